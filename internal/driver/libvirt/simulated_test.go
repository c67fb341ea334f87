package libvirt_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/libvirt"
	"github.com/litterbox-sandbox/litterbox/internal/outpost"
)

// simulated is a libvirt with domains that are goroutines. A domain has the file of
// its disk, a memory, which is the handle of its place, and ports with an outpost
// that answers for that place. Snapshots are in the disk, also for a libvirt that
// does not know them.
type simulated struct {
	mu      sync.Mutex
	domains map[string]*domain
	fails   map[libvirt.Op]error // that the next such request meets; a snapshot is taken all the same
	calls   []libvirt.Op
}

type domain struct {
	dir, name string
	xml       string
	state     libvirt.State
	reason    string
	memory    string
	full      bool            // it cannot write, and stands still again
	asked     []string        // of the place, inside
	known     map[string]bool // to libvirt
	ports     []net.Listener
	links     []net.Conn
}

var (
	nameIn = regexp.MustCompile(`<name>([^<]*)</name>`)
	diskIn = regexp.MustCompile(`<source file='([^']*)/state.qcow2'/>`)
)

// Do implements libvirt.Hypervisor.
func (s *simulated) Do(_ context.Context, q libvirt.Request) (libvirt.Answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, q.Op)
	planned := s.fails[q.Op]
	delete(s.fails, q.Op)
	if planned == nil || q.Op == libvirt.OpSnapshot {
		answer, err := s.perform(q)
		if planned == nil {
			return answer, err
		}
	}
	return libvirt.Answer{}, planned
}

func (s *simulated) perform(q libvirt.Request) (libvirt.Answer, error) {
	d := s.domains[q.UUID]
	switch {
	case q.Op == libvirt.OpVersion:
		return libvirt.Answer{Text: "9.0.0"}, nil
	case q.Op == libvirt.OpDefine && d == nil:
		s.domains[q.UUID] = &domain{
			xml: q.XML, dir: diskIn.FindStringSubmatch(q.XML)[1], name: nameIn.FindStringSubmatch(q.XML)[1],
			state: libvirt.Off, reason: "unknown", memory: "-", known: map[string]bool{},
		}
		return libvirt.Answer{}, nil
	case d == nil && (q.Op == libvirt.OpState || q.Op == libvirt.OpUndefine):
		return libvirt.Answer{State: libvirt.Lost}, nil
	case d == nil:
		return libvirt.Answer{}, driver.ErrMachineLost
	}
	switch q.Op {
	case libvirt.OpState:
		return libvirt.Answer{State: d.state, Reason: d.reason}, nil
	case libvirt.OpMeasure:
		if d.state == libvirt.Off {
			return libvirt.Answer{}, driver.ErrMachineLost
		}
		return libvirt.Answer{State: d.state, Reason: d.reason, Measures: &libvirt.Measures{CPU: 1, Memory: 2, Balloon: 3, Used: 4, Read: 5, Written: 6}}, nil
	case libvirt.OpStart:
		return libvirt.Answer{}, s.on(d, "-")
	case libvirt.OpSuspend:
		d.state, d.reason = libvirt.Paused, "user"
	case libvirt.OpResume:
		if d.state, d.reason = libvirt.Runs, "unpaused"; d.full {
			d.state, d.reason = libvirt.Paused, "ioerror"
		}
	case libvirt.OpStop:
		s.off(d)
	case libvirt.OpUndefine:
		delete(s.domains, q.UUID)
	case libvirt.OpRedefine:
		d.known[nameIn.FindStringSubmatch(q.XML)[1]] = true
	case libvirt.OpSnapshot, libvirt.OpRevert, libvirt.OpRevertOff, libvirt.OpForget:
		return s.snapshot(d, q)
	}
	return libvirt.Answer{}, nil
}

func (s *simulated) snapshot(d *domain, q libvirt.Request) (libvirt.Answer, error) {
	path := filepath.Join(d.dir, "state.qcow2")
	on, err := readDisk(path)
	if err != nil {
		return libvirt.Answer{}, err
	}
	if q.Op == libvirt.OpSnapshot {
		on.kept[q.Name], d.known[q.Name] = moment{d.state, d.memory, on.data}, true
		return libvirt.Answer{Text: "<domainsnapshot><name>" + q.Name + "</name><parent><name>before</name></parent><domain><name>" + d.name +
			"</name><uuid>" + q.UUID + "</uuid><source file='" + d.dir + "/state.qcow2'/></domain></domainsnapshot>"}, on.write(path)
	}
	if !d.known[q.Name] {
		if q.Op == libvirt.OpForget {
			return libvirt.Answer{}, nil
		}
		return libvirt.Answer{}, driver.ErrNoSnapshot
	}
	to, has := on.kept[q.Name]
	if !has || (q.Op == libvirt.OpRevert) != (to.state != libvirt.Off) && q.Op != libvirt.OpForget {
		return libvirt.Answer{}, driver.ErrLeaseUnavailable
	}
	if q.Op == libvirt.OpForget {
		delete(on.kept, q.Name)
		delete(d.known, q.Name)
		return libvirt.Answer{}, on.write(path)
	}
	on.data = to.data
	s.off(d)
	if err := on.write(path); err != nil || q.Op == libvirt.OpRevertOff {
		return libvirt.Answer{}, err
	}
	return libvirt.Answer{}, s.on(d, to.memory)
}

// on starts a domain with a memory. Its outpost answers on the ports.
func (s *simulated) on(d *domain, memory string) error {
	d.state, d.reason, d.memory = libvirt.Runs, "booted", memory
	for port := range 12 {
		path := filepath.Join(d.dir, fmt.Sprintf("%d.sock", port))
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		l, err := net.Listen("unix", path)
		if err != nil {
			return err
		}
		d.ports = append(d.ports, l)
		go s.serve(d, l)
	}
	return nil
}

func (s *simulated) serve(d *domain, l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		d.links = append(d.links, conn)
		silent := d.reason == "ioerror"
		s.mu.Unlock()
		go func() {
			defer conn.Close()
			if silent {
				_, _ = io.Copy(io.Discard, conn) // until the host gives up
				return
			}
			port, err := outpost.AcceptPort(conn)
			switch {
			case err != nil:
			case port.Ended:
				s.mu.Lock()
				s.off(d)
				s.mu.Unlock()
			default:
				_ = outpost.Accepted(link{port.R, conn}, func(stream *outpost.Stream) { s.answer(d, stream) }).Wait()
			}
		}()
	}
}

type link struct {
	r io.Reader
	net.Conn
}

func (l link) Read(p []byte) (int, error) { return l.r.Read(p) }

// answer answers for the one place of a domain, which runs if it is in its memory.
func (s *simulated) answer(d *domain, stream *outpost.Stream) {
	defer stream.Close()
	var q outpost.Request
	if err := outpost.ReadMessage(stream, &q); err != nil {
		return
	}
	s.mu.Lock()
	answer, err := s.inside(d, q)
	s.mu.Unlock()
	if err != nil {
		answer.Failure = outpost.FailureOf(err)
	}
	_ = outpost.WriteMessage(stream, answer) // the host is gone otherwise
}

func (s *simulated) inside(d *domain, q outpost.Request) (outpost.Answer, error) {
	d.asked = append(d.asked, strings.TrimSpace(fmt.Sprintf("%s %s %s", q.Op, q.Place.Sandbox, q.To.Sandbox)))
	switch {
	case d.state == libvirt.Paused: // it would say nothing
		return outpost.Answer{}, driver.ErrUnreachable
	case q.Op == outpost.OpAttach && string(q.Place.Handle) != d.memory:
		return outpost.Answer{}, driver.ErrMachineLost
	case q.Op == outpost.OpDestroy && string(q.Place.Handle) == d.memory:
		d.memory = "-"
	case q.Op == outpost.OpSnapshot:
		return outpost.Answer{Snapshots: []driver.Snapshot{{ID: "inside"}}}, nil
	}
	return outpost.Answer{}, nil
}

// off ends a domain: its memory and its links are gone.
func (s *simulated) off(d *domain) {
	d.state, d.reason, d.memory = libvirt.Off, "destroyed", "-"
	for _, l := range d.ports {
		_ = l.Close() // nothing else ends it
	}
	for _, conn := range d.links {
		_ = conn.Close() // it may have ended
	}
	d.ports, d.links = nil, nil
}

// world is a sandbox in a simulated domain.
type world struct {
	t       *testing.T
	libvirt *simulated
	driver  *libvirt.Driver
	dir     string
	lease   driver.Lease
}

func newWorld(t *testing.T) *world {
	t.Helper()
	if runtime.GOARCH != "amd64" {
		t.Skip("virtual machines are made on amd64")
	}
	dir, err := os.MkdirTemp("", "lv") // short: sockets have their paths below it
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: dir, libvirt: &simulated{domains: map[string]*domain{}, fails: map[libvirt.Op]error{}}}
	t.Cleanup(func() {
		w.libvirt.mu.Lock()
		defer w.libvirt.mu.Unlock()
		for _, d := range w.libvirt.domains {
			w.libvirt.off(d)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	image := make([]byte, 104)
	copy(image, "QFI\xfb")
	image[31] = 1 // its size
	err = os.MkdirAll(filepath.Join(dir, "images", "1"), 0o700)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "images", "1", "state.qcow2"), image, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	w.driver = w.another()
	w.lease = w.sandbox("one")
	return w
}

// another is the driver of another process.
func (w *world) another() *libvirt.Driver {
	return libvirt.New(w.options())
}

// sandbox makes the state directory of a sandbox that has not begun.
func (w *world) sandbox(id string) driver.Lease {
	w.t.Helper()
	stateDir := filepath.Join(w.dir, id)
	if err := os.Mkdir(stateDir, 0o700); err != nil {
		w.t.Fatal(err)
	}
	return driver.Lease{ID: id, SandboxID: id, StateDir: stateDir}
}

// start makes the domain of the sandbox, or starts it, and its place.
func (w *world) start(handle string) {
	w.t.Helper()
	if err := (libvirt.Machine{Options: w.options(), StateDir: w.lease.StateDir}).Ensure(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	w.lease.Handle = []byte(handle)
	w.change(func(d *domain) { d.memory = handle })
}

func (w *world) options() libvirt.Options {
	image := filepath.Join(w.dir, "images", "1")
	return libvirt.Options{Hypervisor: w.libvirt, URI: "qemu:///session", Emulated: true, Image: func() (string, error) { return image, nil }}
}

// change changes the domain of the sandbox.
func (w *world) change(do func(*domain)) {
	w.t.Helper()
	w.libvirt.mu.Lock()
	defer w.libvirt.mu.Unlock()
	for _, d := range w.libvirt.domains {
		if filepath.Dir(d.dir) == w.lease.StateDir {
			do(d)
			return
		}
	}
	w.t.Fatalf("sandbox %s has no domain", w.lease.SandboxID)
}

// writes replaces the data of the domain's disk.
func (w *world) writes(data string) {
	w.t.Helper()
	w.change(func(d *domain) {
		path := filepath.Join(d.dir, "state.qcow2")
		on, err := readDisk(path)
		if on.data = data; err == nil {
			err = on.write(path)
		}
		if err != nil {
			w.t.Error(err)
		}
	})
}

// holds demands state and data of the domain, and how many snapshots its disk
// has.
func (w *world) holds(state libvirt.State, data string, snapshots int) {
	w.t.Helper()
	w.change(func(d *domain) {
		on, err := readDisk(filepath.Join(d.dir, "state.qcow2"))
		if err != nil || d.state != state || on.data != data || len(on.kept) != snapshots {
			w.t.Errorf("the domain is %s with %q and %d snapshots, not %s with %q and %d: %v", d.state, on.data, len(on.kept), state, data, snapshots, err)
		}
	})
}
