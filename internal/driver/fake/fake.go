// Package fake is an in-memory driver: it passes the driver contract without
// a kernel's help and so can stand in for a real one in tests, and it has
// switchable defects, which prove that every check of the contract can fail.
//
// Its guest is a goroutine that answers the wire with a handful of built-in
// commands. Files are real ones in the directories of the Spec, so that the
// host's side sees what a real driver would leave. Nothing else is isolated,
// and no untrusted code must ever run here.
//
// Start reading at [Machine].
package fake

import (
	"fmt"
	"slices"
	"sync"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// Machine is what outlives a driver value: running places and the deletions
// that an overlay would keep on disk. Its zero value is not ready; see
// [NewMachine].
type Machine struct {
	mu      sync.Mutex
	serial  int
	places  map[string]*place      // by sandbox
	leaked  []string               // what a defect left behind
	deleted map[string]pathSet     // names removed from the layers, by upper directory
	known   map[string]driver.Spec // what each sandbox was acquired with last
	saved   map[string][]saved     // snapshots, oldest first, by sandbox
	goldens map[string]kept        // by their directory
	begun   map[string]string      // the golden of a sandbox
	asked   int                    // calls of Ownership, for a defect
}

type pathSet map[string]bool

// NewMachine returns a machine on which nothing runs.
func NewMachine() *Machine {
	return &Machine{places: map[string]*place{}, deleted: map[string]pathSet{}, known: map[string]driver.Spec{}, saved: map[string][]saved{}, goldens: map[string]kept{}, begun: map[string]string{}}
}

// Places names the running places.
func (m *Machine) Places() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	running := slices.Clone(m.leaked)
	for id, p := range m.places {
		if p.running() {
			running = append(running, id)
		}
	}
	return running
}

// Kill ends the guest of a place as kill -9 does, behind the driver's back.
func (m *Machine) Kill(lease driver.Lease) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.places[lease.SandboxID]
	if p == nil {
		return fmt.Errorf("cannot kill the guest of %q: there is none", lease.SandboxID)
	}
	p.crashed = true
	p.end()
	return nil
}

// Deafen makes a place answer nothing, or answer again, as a machine does whose
// network is down. Everything in it goes on running.
func (m *Machine) Deafen(lease driver.Lease, deaf bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.places[lease.SandboxID]
	if p == nil {
		return fmt.Errorf("cannot deafen the place of %q: there is none", lease.SandboxID)
	}
	p.deaf = deaf
	if deaf {
		p.cut()
	}
	return nil
}

// Cut ends every wire into a place; it goes on and can be dialled again.
func (m *Machine) Cut(lease driver.Lease) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.places[lease.SandboxID]
	if p == nil {
		return fmt.Errorf("cannot cut the wires of %q: there is none", lease.SandboxID)
	}
	p.cut()
	return nil
}

// Options choose a variant of the driver.
type Options struct {
	// Minimal declares no optional operation.
	Minimal bool
	// Defect is what should be wrong with it; empty for a driver that passes.
	Defect Defect
	// Guest, if set, is asked first to answer a request; false leaves it to the
	// fake's own guest.
	Guest func(request wire.Request, stream wire.Stream) (answered bool)
}

// Driver implements driver.Driver on a [Machine].
type Driver struct {
	machine *Machine
	options Options
	// mine are the leases that this value acquired; only a defect looks.
	mine *sync.Map
}

// New makes a driver value, as every process that uses the machine would.
func New(machine *Machine, options Options) Driver {
	return Driver{machine: machine, options: options, mine: &sync.Map{}}
}

func (d Driver) has(defect Defect) bool { return d.options.Defect == defect }
