// Package remote is the driver of places in other machines. The outpost there
// (package outpost) makes them through the namespace driver, so that they have the
// walls of any place here, with the machine's own around them. This package sends
// their layers, asks, and trusts no answer about what runs there.
//
// A [Machine] knows what kind of machine it is, how to start it and how to get a
// byte stream into it. Start reading at [Driver.Acquire].
package remote

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/outpost"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// Driver implements driver.Driver, driver.Carrier, driver.Retainer, driver.Lender, driver.FarJoiner,
// driver.GoldenKeeper and driver.Relayer. It is made by [New].
type Driver struct {
	name    string
	traits  sandbox.Traits
	machine func(stateDir string) Machine

	mu      sync.Mutex
	clients map[string]*client // by the name of the machine

	asked sync.Once
	can   driver.Capabilities

	keeps atomic.Bool // this process is a keeper, which borrows no link
}

// New makes a driver of machines. machine returns the one that a sandbox's place
// is in, by the sandbox's state directory; an empty one asks for any, which is
// only asked what it can do. traits are the traits of every place there.
func New(name string, traits sandbox.Traits, machine func(stateDir string) Machine) *Driver {
	traits.Lends = true
	return &Driver{name: name, traits: traits, machine: machine, clients: map[string]*client{}}
}

// Name implements driver.Driver.
func (d *Driver) Name() string { return d.name }

// Traits implements driver.Driver.
func (d *Driver) Traits() sandbox.Traits { return d.traits }

// Capabilities implements driver.Driver: those of the namespace driver there,
// without what needs this machine's disk. A machine that does not answer can do
// nothing, and the reason is reported.
func (d *Driver) Capabilities() driver.Capabilities {
	d.asked.Do(func() {
		d.can = driver.Capabilities{Traits: d.traits}
		answer, err := d.at("").ask(context.Background(), outpost.Request{Op: outpost.OpStatus})
		if err == nil && answer.Status == nil {
			err = errors.New("it does not say what it is")
		}
		if err != nil {
			tier := driver.Tier{Isolation: sandbox.IsolationFull, Missing: []string{"the machine does not answer: " + err.Error()}}
			if hint := fault.HintOf(err); hint != "" {
				tier.Mend = []string{hint}
			}
			d.can.Isolation = []driver.Tier{tier}
			return
		}
		there := answer.Status.Capabilities
		d.can.Pause, d.can.Limits, d.can.FSMonitor, d.can.Isolation = there.Pause, there.Limits, there.FSMonitor, there.Isolation
		d.can.Snapshots, d.can.Fork, d.can.Goldens = there.Snapshots, there.Fork, there.Goldens
	})
	return d.can
}

// Ownership implements driver.Driver. Files here belong to the user who runs
// litterbox; the outpost gives them to their owner there.
func (d *Driver) Ownership(string) driver.Ownership {
	own := driver.Ownership{UID: os.Geteuid(), GID: os.Getegid(), UpperUID: -1, UpperGID: -1}
	if own.UID <= 0 {
		own.UID, own.GID = ordinaryID, ordinaryID
	}
	return own
}

// ordinaryID is the first uid that useradd gives to a human.
const ordinaryID = 1000

// Carriage implements driver.Driver: layers are sent, and mounted there.
func (d *Driver) Carriage(context.Context, string) (sandbox.Carriage, string) {
	return sandbox.CarriageOverlay, ""
}

// Acquire implements driver.Driver.
func (d *Driver) Acquire(ctx context.Context, spec driver.Spec) (driver.Lease, error) {
	lease := driver.Lease{ID: spec.SandboxID, SandboxID: spec.SandboxID, StateDir: spec.StateDir, Traits: d.traits}
	if len(spec.Mounts) > 0 || len(spec.Caches) > 0 {
		return lease, fault.Wrap("", driver.ErrUnsupported, "cannot start sandbox %q: nothing of this machine can be mounted in another", spec.Name)
	}
	if spec.Workspace.Live != nil && !d.traits.Live {
		return lease, fault.Wrap("", driver.ErrUnsupported, "cannot start %q: a directory of this machine cannot be worked in from another", spec.Name)
	}
	if spec.Base != nil {
		return lease, fault.Wrap("", driver.ErrUnsupported, "cannot start sandbox %q: container.base-image is not carried to another machine yet", spec.Name).
			WithHint("litterbox create %s --driver namespace", spec.Name)
	}
	machine := d.machine(spec.StateDir)
	if outfitted, can := machine.(Outfitted); can {
		machine = outfitted.With(spec.VM)
	}
	if err := machine.Ensure(ctx); err != nil {
		return lease, err
	}
	c := d.at(spec.StateDir)
	keys, err := c.bring(ctx, spec.Workspace.Layers, showing(spec.Progress, strings.TrimPrefix(d.name, driver.OnMachine(""))))
	if err != nil {
		return lease, err
	}
	if d.traits.System != runtime.GOOS || d.traits.Architecture != runtime.GOARCH {
		spec.Program = "" // this machine's; the outpost has its own
	}
	program, err := c.bringProgram(ctx, spec.Program)
	if err != nil {
		return lease, err
	}
	at, err := d.begin(ctx, c, spec)
	if err != nil {
		return lease, err
	}
	there := spec
	there.Lent, there.VM = nil, driver.VM{}
	for _, one := range spec.Lent {
		there.Lent = append(there.Lent, driver.Lent{Target: one.Target})
	}
	there.StateDir, there.Workspace.Layers, there.Workspace.Upper, there.Workspace.Work = "", keys, "", ""
	if lease.Traits.Network == sandbox.NetworkStreams && !spec.Streams && c.shares(ctx) {
		lease.Traits.Network = sandbox.NetworkDescriptors
	}
	there.Streams = spec.Streams || lease.Traits.Network == sandbox.NetworkStreams
	answer, err := c.ask(ctx, outpost.Request{Op: outpost.OpAcquire, Place: at.place(lease), Spec: &there, Program: program})
	if err != nil {
		return lease, err
	}
	lease.Handle, lease.InForce = answer.Handle, answer.InForce
	return lease, nil
}

// place is how the machine knows the place of a lease. A missing record has no
// identity, and then nothing is read from the files.
func place(lease driver.Lease) outpost.Place {
	at, err := readWhere(lease.StateDir)
	if err != nil {
		at = where{}
	}
	return at.place(lease)
}

// about asks for the place of a lease.
func (d *Driver) about(ctx context.Context, lease driver.Lease, q outpost.Request) (outpost.Answer, error) {
	q.Place = place(lease)
	return d.at(lease.StateDir).ask(ctx, q)
}

// Attach implements driver.Driver.
func (d *Driver) Attach(ctx context.Context, lease driver.Lease) error {
	_, err := d.about(ctx, lease, outpost.Request{Op: outpost.OpAttach})
	return err
}

// Dial implements driver.Driver: a stream of the outpost's, which carries what the
// guest's wire does, or on a shared kernel a connection of the guest's own.
func (d *Driver) Dial(ctx context.Context, lease driver.Lease) (net.Conn, error) {
	c, q := d.at(lease.StateDir), outpost.Request{Op: outpost.OpDial, Place: place(lease)}
	if lease.Traits.Network == sandbox.NetworkDescriptors {
		return c.dialMeeting(ctx, q)
	}
	return c.dialStream(ctx, q)
}

// pauseGrace is how much longer than the caller's own limit to wait for an
// outpost, so that it can resume what it could not pause in time.
const pauseGrace = 15 * time.Second

// Pause implements driver.Driver. The remaining time counts in the machine: a
// pause that is given up here must not take hold there.
func (d *Driver) Pause(ctx context.Context, lease driver.Lease, reason string) error {
	left := pauseGrace
	if deadline, has := ctx.Deadline(); has {
		left = time.Until(deadline)
	}
	if ctx.Err() != nil {
		left = 0
	}
	long, cancel := context.WithTimeout(context.WithoutCancel(ctx), max(left, 0)+pauseGrace)
	defer cancel()
	_, err := d.about(long, lease, outpost.Request{Op: outpost.OpPause, Reason: reason, Patience: max(left, 1)})
	if err == nil && ctx.Err() != nil {
		return errors.Join(fault.Wrap("", driver.ErrPauseTimeout, "cannot pause the sandbox"), d.Resume(long, lease))
	}
	return err
}

// Resume implements driver.Driver.
func (d *Driver) Resume(ctx context.Context, lease driver.Lease) error {
	_, err := d.about(ctx, lease, outpost.Request{Op: outpost.OpResume})
	return err
}

// Limit implements driver.Driver.
func (d *Driver) Limit(ctx context.Context, lease driver.Lease, limits sandbox.Limits) (driver.InForce, error) {
	answer, err := d.about(ctx, lease, outpost.Request{Op: outpost.OpLimit, Limits: limits})
	return answer.InForce, err
}

// Lend implements driver.Lender.
func (d *Driver) Lend(ctx context.Context, lease driver.Lease, target string, content []byte) error {
	_, err := d.about(ctx, lease, outpost.Request{Op: outpost.OpLend, Path: target, Content: content})
	return err
}

// Recover implements driver.Driver.
func (d *Driver) Recover(ctx context.Context, lease driver.Lease) ([]string, error) {
	answer, err := d.about(ctx, lease, outpost.Request{Op: outpost.OpRecover})
	if errors.Is(err, driver.ErrMachineLost) {
		return nil, nil // nothing of it is left
	}
	return answer.Said, unlessNowhere(ctx, lease, err)
}

// Destroy implements driver.Driver.
func (d *Driver) Destroy(ctx context.Context, lease driver.Lease, force bool) error {
	_, err := d.about(ctx, lease, outpost.Request{Op: outpost.OpDestroy, Force: force})
	if errors.Is(err, driver.ErrMachineLost) {
		return nil
	}
	return unlessNowhere(ctx, lease, err)
}

// unlessNowhere drops the error of a machine that cannot be asked about a sandbox
// that has begun in none.
func unlessNowhere(ctx context.Context, lease driver.Lease, err error) error {
	if _, unknown := readWhere(lease.StateDir); errors.Is(unknown, fs.ErrNotExist) && ctx.Err() == nil {
		return nil
	}
	return err
}

// CollectMetrics implements driver.Driver.
func (d *Driver) CollectMetrics(ctx context.Context, lease driver.Lease) (driver.Metrics, error) {
	answer, err := d.about(ctx, lease, outpost.Request{Op: outpost.OpMetrics})
	if err == nil && answer.Metrics == nil {
		err = driver.Joined(driver.ErrUnreachable, errors.New("the outpost measured nothing"))
	}
	if err != nil {
		return driver.Unmeasured(), err
	}
	return *answer.Metrics, nil
}
