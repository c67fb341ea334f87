package libvirt

import (
	"context"
	"errors"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/remote"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/fsmonitor"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// Driver is the driver of places in domains. Unlike in other machines, a machine
// belongs to one sandbox: it pauses and ends with the place.
type Driver struct {
	*remote.Driver
	options Options
}

// New makes the driver.
func New(options Options) *Driver {
	machine := func(stateDir string) remote.Machine { return Machine{Options: options, StateDir: stateDir} }
	return &Driver{Driver: remote.New(Name, Traits(), machine), options: options}
}

func (d *Driver) machine(lease driver.Lease) Machine {
	return Machine{Options: d.options, StateDir: lease.StateDir}
}

// Capabilities implements driver.Driver. There is no machine to ask before the
// first sandbox, and all are made from our images.
func (d *Driver) Capabilities() driver.Capabilities { return d.options.capabilities() }

func (o Options) capabilities() driver.Capabilities {
	can := driver.Capabilities{
		Traits: Traits(), Pause: true, FSMonitor: fsmonitor.Program,
		Limits:    []string{sandbox.LimitMemory, sandbox.LimitPIDs, sandbox.LimitCPUs},
		Snapshots: driver.Snapshots{Freeze: true, Live: true, Memory: true}, Fork: true,
	}
	tier := driver.Tier{Isolation: sandbox.IsolationFull, Available: true}
	ctx, cancel := context.WithTimeout(context.Background(), askPatience)
	defer cancel()
	m := Machine{Options: o}
	_, err := o.Hypervisor.Do(ctx, Request{Op: OpVersion, URI: m.uri()})
	if err == nil {
		_, err = o.Image()
	}
	if err != nil {
		tier.Available, tier.Missing = false, []string{err.Error()}
		if hint := fault.HintOf(err); hint != "" {
			tier.Mend = []string{hint}
		}
	}
	can.Isolation = []driver.Tier{tier}
	return can
}

// askPatience bounds a look at libvirt that only informs.
const askPatience = 5 * time.Second

// Attach implements driver.Driver. A paused domain answers nothing; one that stood still
// for want of room goes on where there is some again.
func (d *Driver) Attach(ctx context.Context, lease driver.Lease) error {
	m := d.machine(lease)
	if m.Paused() {
		return m.stillPaused(ctx)
	}
	err := d.Driver.Attach(ctx, lease)
	if !errors.Is(err, driver.ErrUnreachable) {
		return err
	}
	if r, reading := readKept(lease.StateDir); reading == nil && r.Copying {
		// A fork was killed, or goes on: this waits for it.
		if err := m.withKept(ctx, func(handle, *keptRecord) error { return nil }); err != nil {
			return err
		}
		return d.Driver.Attach(ctx, lease)
	}
	if m.wentOn(ctx) {
		return d.Driver.Attach(ctx, lease)
	}
	return err
}

// Pause implements driver.Driver.
func (d *Driver) Pause(ctx context.Context, lease driver.Lease, reason string) error {
	if err := d.Attach(ctx, lease); err != nil {
		return err
	}
	return d.machine(lease).Pause(ctx, reason)
}

// Resume implements driver.Driver.
func (d *Driver) Resume(ctx context.Context, lease driver.Lease) error {
	return d.machine(lease).Resume(ctx)
}

// Destroy implements driver.Driver: the domain is switched off after its place. Its
// disk stays.
func (d *Driver) Destroy(ctx context.Context, lease driver.Lease, force bool) error {
	m := d.machine(lease)
	if m.Paused() {
		if err := m.Resume(ctx); err != nil && !errors.Is(err, driver.ErrMachineLost) {
			return err
		}
	}
	err := d.Driver.Destroy(ctx, lease, force)
	if errors.Is(err, driver.ErrUnreachable) && force {
		err = nil // it ends with the domain
	}
	return errors.Join(err, m.End(ctx))
}

// Recover implements driver.Driver. A domain that libvirt no longer knows, and one
// that has ended, have lost their places and nothing else: the next Acquire starts
// them from their disks.
func (d *Driver) Recover(ctx context.Context, lease driver.Lease) ([]string, error) {
	said, err := d.Driver.Recover(ctx, lease)
	if err != nil {
		return said, err
	}
	m := d.machine(lease)
	h, err := readHandle(lease.StateDir)
	if err != nil {
		return said, nil // there is no domain
	}
	answer, err := m.ask(ctx, h, OpState)
	if err != nil {
		return said, err
	}
	switch answer.State {
	case Lost:
		said = append(said, "libvirt no longer knows the domain "+h.UUID+": the next start defines it again")
	case Off:
		said = append(said, "the domain "+h.UUID+" is off ("+answer.Reason+"): the next start begins from its disk")
	}
	return said, nil
}

// Forget implements driver.Carrier.
func (d *Driver) Forget(ctx context.Context, lease driver.Lease) error {
	return d.machine(lease).Forget(ctx)
}

// CollectMetrics implements driver.Driver. Only libvirt measures a paused domain.
func (d *Driver) CollectMetrics(ctx context.Context, lease driver.Lease) (driver.Metrics, error) {
	m := d.machine(lease)
	if !m.Paused() {
		return d.Driver.CollectMetrics(ctx, lease)
	}
	measures, err := m.Measure(ctx, nil)
	if err != nil {
		return driver.Unmeasured(), err
	}
	metrics := driver.Unmeasured()
	metrics.CPU, metrics.Memory, metrics.Read, metrics.Written = measures.CPU, measures.Memory, measures.Read, measures.Written
	return metrics, nil
}

// Machine implements driver.Hypervised.
func (d *Driver) Machine(ctx context.Context, lease driver.Lease, measured bool) (driver.Machine, error) {
	return d.machine(lease).hypervised(ctx, measured, d.Driver, lease.StateDir)
}

func (m Machine) hypervised(ctx context.Context, measured bool, inside *remote.Driver, stateDir string) (driver.Machine, error) {
	if !measured {
		return m.State(ctx)
	}
	return m.Measure(ctx, func(ctx context.Context) error { return inside.Ping(ctx, stateDir) })
}
