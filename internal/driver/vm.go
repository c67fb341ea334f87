package driver

import (
	"context"
	"time"
)

// VM is what a virtual machine is given when it is made for a place. The driver
// chooses whatever is not set; one without virtual machines ignores it.
type VM struct {
	CPUs   int           `json:"cpus,omitempty"`
	Memory int64         `json:"memory_bytes,omitempty"`
	Idle   time.Duration `json:"idle_ns,omitempty"` // how long it runs without a place; negative: for ever
	Image  string        `json:"image,omitempty"`   // vm.image: a driver's name for one, an address, or a path
}

// Hypervised is also implemented by drivers whose places are in virtual machines of a
// hypervisor's, which knows about them also when nothing inside answers.
type Hypervised interface {
	// Machine asks the hypervisor about the machine of a lease, and with measured also
	// what it uses. It starts nothing. A sandbox without a machine, and a hypervisor
	// that does not answer, are errors.
	Machine(ctx context.Context, lease Lease, measured bool) (Machine, error)
}

// Machine is what a hypervisor says about a machine at one moment. Negative values
// mean: not measured.
type Machine struct {
	Name    string        `json:"name"`
	State   string        `json:"state"`         // running, paused, off or lost
	Reason  string        `json:"reason"`        // why, in the hypervisor's words; it may be empty
	CPU     time.Duration `json:"cpu_ns"`        // since it started
	Memory  int64         `json:"memory_bytes"`  // that the host has given
	Balloon int64         `json:"balloon_bytes"` // that the guest may use
	Used    int64         `json:"used_bytes"`    // by the guest's own count, without what it could drop
	Read    int64         `json:"read_bytes"`    // from its disk, since it started
	Written int64         `json:"written_bytes"`
	Agent   *bool         `json:"agent,omitempty"` // whether the agent inside answered; nil: it was not asked
}

// Text is the state with its reason.
func (m Machine) Text() string {
	if m.Reason == "" {
		return m.State
	}
	return m.State + " (" + m.Reason + ")"
}

// reasonPatience bounds how long an event waits for its reason.
const reasonPatience = 3 * time.Second

// Because adds what the hypervisor says to the data of an event, where there is one
// that answers.
func Because(ctx context.Context, d Driver, lease Lease, data map[string]string) map[string]string {
	h, has := d.(Hypervised)
	if !has {
		return data
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reasonPatience)
	defer cancel()
	m, err := h.Machine(ctx, lease, false)
	if err != nil {
		return data
	}
	if data == nil {
		data = map[string]string{}
	}
	data["machine"] = m.Text()
	return data
}
