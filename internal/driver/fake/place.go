package fake

import (
	"net"
	"path/filepath"
	"sync"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// place is one running place: a guest that is nothing but goroutines.
type place struct {
	driver  Driver
	spec    driver.Spec
	serial  int
	started time.Time
	crashed bool // ended by Kill; guarded by the machine
	deaf    bool // answers nothing; guarded by the machine

	ended   chan struct{} // closed when the guest has ended
	endOnce *sync.Once

	mu    *sync.Mutex
	conns map[*end]bool
	gate  *sync.Cond // on mu
	still *bool      // paused
	net   *network
	lent  *lent

	services *services
}

func (d Driver) newPlace(spec driver.Spec, serial int) *place {
	mu := &sync.Mutex{}
	return &place{
		driver: d, spec: spec, serial: serial, started: time.Now(),
		ended: make(chan struct{}), endOnce: &sync.Once{},
		mu: mu, gate: sync.NewCond(mu), conns: map[*end]bool{}, still: new(bool),
		services: newServices(), lent: newLent(spec.Lent),
		net: &network{waiting: map[uint64]*connection{}},
	}
}

// dressedAs serves p's files to the holder of another place's keys.
func (p *place) dressedAs(other *place) *place {
	mixed := *p
	mixed.spec.HostKey, mixed.spec.GuestKey = other.spec.HostKey, other.spec.GuestKey
	return &mixed
}

func (p *place) running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

func (p *place) wires() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	open := 0
	for conn := range p.conns {
		if !conn.in.isClosed() {
			open++
		}
	}
	return open
}

// cut ends every stream.
func (p *place) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.conns {
		conn.Close()
	}
}

// end removes the guest and with it every stream.
func (p *place) end() {
	p.endOnce.Do(func() { close(p.ended) })
	p.cut()
	p.mu.Lock()
	defer p.mu.Unlock()
	*p.still = false
	p.gate.Broadcast()
}

func (p *place) dial() net.Conn {
	near, far := pipe()
	p.mu.Lock()
	p.conns[far] = true
	p.mu.Unlock()
	go func() {
		// A failing connection shows at its other end.
		if p.driver.has(LetsStrangersIn) {
			serveAnybody(far, p.spec.GuestKey, p.handle)
		} else {
			_ = wire.ServeAll(far, p.spec.GuestKey, p.spec.HostKey, wire.Handlers{Stream: p.handle, Announced: p.net.announced})
		}
		p.mu.Lock()
		delete(p.conns, far)
		p.mu.Unlock()
	}()
	return near
}

func (p *place) setPaused(paused bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*p.still = paused
	p.gate.Broadcast()
}

func (p *place) paused() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return *p.still
}

// waitWhilePaused holds a frozen guest.
func (p *place) waitWhilePaused() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for *p.still {
		p.gate.Wait()
	}
}

// upper is where changes go.
func (p *place) upper() string { return p.driver.upperOf(p.spec) }

func (d Driver) upperOf(spec driver.Spec) string {
	switch {
	case spec.Workspace.Live == nil:
	case d.has(CopiesLive):
		return filepath.Join(spec.StateDir, "copy")
	default:
		return spec.Workspace.Path
	}
	if (d.has(HidesChanges) || d.options.Minimal) && len(spec.Workspace.Layers) > 0 {
		return filepath.Join(spec.StateDir, "elsewhere")
	}
	return spec.Workspace.Upper
}

func (p *place) home() string { return filepath.Join(p.spec.StateDir, "home") }
