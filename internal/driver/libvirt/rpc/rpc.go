// Package rpc speaks libvirt's protocol: one connection for each URI, which is
// dialled when needed and again when lost. It maps libvirt's errors to those of
// package driver, and nothing of the library leaves it. It makes no decisions;
// package libvirt does. Start reading at [Pool.Do].
package rpc

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	golibvirt "github.com/digitalocean/go-libvirt"

	"github.com/litterbox-sandbox/litterbox/internal/driver/libvirt"
)

// Connection has the used methods of the library's connections, so that a test
// can stand in for libvirt.
type Connection interface {
	Disconnected() <-chan struct{}
	ConnectGetLibVersion() (uint64, error)
	DomainLookupByUUID(id golibvirt.UUID) (golibvirt.Domain, error)
	DomainDefineXMLFlags(text string, flags golibvirt.DomainDefineFlags) (golibvirt.Domain, error)
	DomainCreateWithFlags(domain golibvirt.Domain, flags uint32) (golibvirt.Domain, error)
	DomainGetState(domain golibvirt.Domain, flags uint32) (state, reason int32, err error)
	DomainSuspend(domain golibvirt.Domain) error
	DomainResume(domain golibvirt.Domain) error
	DomainDestroyFlags(domain golibvirt.Domain, flags golibvirt.DomainDestroyFlagsValues) error
	DomainUndefineFlags(domain golibvirt.Domain, flags golibvirt.DomainUndefineFlagsValues) error
	DomainGetInfo(domain golibvirt.Domain) (state uint8, maxMemory, memory uint64, cpus uint16, time uint64, err error)
	DomainMemoryStats(domain golibvirt.Domain, most, flags uint32) ([]golibvirt.DomainMemoryStat, error)
	DomainBlockStats(domain golibvirt.Domain, path string) (reads, read, writes, written, errors int64, err error)
	DomainSnapshotCreateXML(domain golibvirt.Domain, text string, flags uint32) (golibvirt.DomainSnapshot, error)
	DomainSnapshotGetXMLDesc(snapshot golibvirt.DomainSnapshot, flags uint32) (string, error)
	DomainSnapshotLookupByName(domain golibvirt.Domain, name string, flags uint32) (golibvirt.DomainSnapshot, error)
	DomainRevertToSnapshot(snapshot golibvirt.DomainSnapshot, flags uint32) error
	DomainSnapshotDelete(snapshot golibvirt.DomainSnapshot, flags golibvirt.DomainSnapshotDeleteFlags) error
}

// Pool implements libvirt.Hypervisor.
type Pool struct {
	// Session is the directory in which the sockets of the user's own libvirt are;
	// empty when none is known.
	Session string
	// Connect makes a connection; nil is the library's.
	Connect func(uri string) (Connection, error)

	mu    sync.Mutex
	conns map[string]Connection
}

// Attempts and pauses for passing errors: about two seconds, which a restarting
// libvirtd needs.
const attempts = 6

const firstPause = 50 * time.Millisecond

// patience bounds one request. One that writes or reads the memory of a domain takes
// as long as its disk does.
func patience(op libvirt.Op) time.Duration {
	switch op {
	case libvirt.OpSnapshot, libvirt.OpRevert, libvirt.OpRevertOff, libvirt.OpForget:
		return 15 * time.Minute
	}
	return time.Minute
}

// Do implements libvirt.Hypervisor.
func (p *Pool) Do(ctx context.Context, q libvirt.Request) (libvirt.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, patience(q.Op))
	defer cancel()
	pause := firstPause
	for attempt := 1; ; attempt++ {
		answer, err := p.once(ctx, q)
		if err == nil || !passes(err) || attempt == attempts {
			return answer, sealed(q, err)
		}
		select {
		case <-ctx.Done():
			return answer, sealed(q, ctx.Err())
		case <-time.After(pause):
			pause *= 2
		}
	}
}

// once asks on one connection. The library waits for answers without a bound: a
// missing one costs the connection.
func (p *Pool) once(ctx context.Context, q libvirt.Request) (libvirt.Answer, error) {
	type result struct {
		answer libvirt.Answer
		err    error
	}
	done := make(chan result, 1)
	go func() {
		conn, err := p.connection(q.URI)
		if err != nil {
			done <- result{err: err}
			return
		}
		answer, err := perform(conn, q)
		if gone(err) {
			p.drop(q.URI, conn)
		}
		done <- result{answer, err}
	}()
	select {
	case r := <-done:
		return r.answer, r.err
	case <-ctx.Done():
		p.drop(q.URI, nil)
		return libvirt.Answer{}, ctx.Err()
	}
}

// connection is one that has not ended, as far as is known.
func (p *Pool) connection(uri string) (Connection, error) {
	p.mu.Lock()
	conn := p.conns[uri]
	p.mu.Unlock()
	if conn != nil {
		select {
		case <-conn.Disconnected():
		default:
			return conn, nil
		}
	}
	connect := p.Connect
	if connect == nil {
		connect = p.dial
	}
	conn, err := connect(uri)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conns == nil {
		p.conns = map[string]Connection{}
	}
	p.conns[uri] = conn
	return conn, nil
}

// drop forgets a connection; nil means the current one.
func (p *Pool) drop(uri string, conn Connection) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if conn == nil || p.conns[uri] == conn {
		delete(p.conns, uri)
	}
}

// dial connects through the library.
func (p *Pool) dial(text string) (Connection, error) {
	uri, err := url.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("cannot read the address %q of libvirt: %w", text, err)
	}
	if query := uri.Query(); uri.Host == "" && query.Get("socket") == "" {
		query.Set("socket", p.socket(uri.Path))
		uri.RawQuery = query.Encode()
	}
	conn, err := golibvirt.ConnectToURI(uri)
	if err != nil {
		return nil, err
	}
	return conn, nil
}

// socket is where libvirt listens (docs/daemons.rst of libvirt): the daemon of all
// drivers, or QEMU's own.
func (p *Pool) socket(path string) string {
	dir := "/run/libvirt"
	if path == "/session" {
		dir = p.Session
	}
	for _, name := range []string{"libvirt-sock", "virtqemud-sock"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return filepath.Join(dir, name)
		}
	}
	return filepath.Join(dir, "libvirt-sock")
}
