package lima

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/lima/limactl"
	"github.com/litterbox-sandbox/litterbox/internal/driver/remote"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/fsmonitor"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// OwnDriver is the driver of places in virtual machines of their own. A machine
// starts and stops with its place; its disk stays until the sandbox is deleted.
type OwnDriver struct {
	*remote.Driver
	options Options
}

// NewOwn makes the driver.
func NewOwn(o Options) *OwnDriver {
	machine := func(stateDir string) remote.Machine {
		if stateDir == "" {
			return asked{At("", o)}
		}
		return Own(stateDir, o)
	}
	return &OwnDriver{Driver: remote.New(OwnName, traits(), machine), options: o}
}

func (d *OwnDriver) own(lease driver.Lease) Machine { return Own(lease.StateDir, d.options) }

// Capabilities implements driver.Driver. No machine is started to be asked.
func (d *OwnDriver) Capabilities() driver.Capabilities {
	tier := driver.Tier{Isolation: sandbox.IsolationFull, Available: true}
	_, err := limactl.Client{Env: d.options.Env}.Path()
	if err == nil && os.Geteuid() == 0 {
		err = limactl.ErrRoot
	}
	if err != nil {
		tier.Available, tier.Missing = false, []string{err.Error()}
		if hint := fault.HintOf(err); hint != "" {
			tier.Mend = []string{hint}
		}
	}
	return driver.Capabilities{
		Traits: traits(), Pause: true, FSMonitor: fsmonitor.Program,
		Snapshots: driver.Snapshots{Freeze: true, Live: true}, Isolation: []driver.Tier{tier},
	}
}

// Destroy implements driver.Driver: the machine is shut down after its place.
func (d *OwnDriver) Destroy(ctx context.Context, lease driver.Lease, force bool) error {
	err := d.Driver.Destroy(ctx, lease, force)
	if errors.Is(err, driver.ErrUnreachable) && force {
		err = nil // it ends with the machine
	}
	d.Hangup(lease.StateDir)
	m := d.own(lease)
	if _, known := os.Stat(m.dir); known != nil {
		return err // it was never made
	}
	stopped := m.sealed(VM{m}.Stop(ctx, nil))
	if errors.Is(stopped, driver.ErrMachineLost) {
		stopped = nil
	}
	return errors.Join(err, stopped)
}

// Forget implements driver.Carrier: the machine goes with all that it holds.
func (d *OwnDriver) Forget(ctx context.Context, lease driver.Lease) error {
	d.Hangup(lease.StateDir)
	return d.own(lease).remove(ctx)
}

// awake asks once more after starting a machine that was stopped.
func (m Machine) awake(ctx context.Context, ask func() error) error {
	err := ask()
	if !errors.Is(err, driver.ErrMachineLost) {
		return err
	}
	if err := m.Wake(ctx); err != nil {
		return err
	}
	return ask()
}

// Snapshot implements driver.Snapshotter. The files of a stopped sandbox are in a
// machine that is started for that.
func (d *OwnDriver) Snapshot(ctx context.Context, lease driver.Lease, label string) (kept driver.Snapshot, err error) {
	err = d.own(lease).awake(ctx, func() (err error) { kept, err = d.Driver.Snapshot(ctx, lease, label); return err })
	return kept, err
}

// Snapshots implements driver.Snapshotter.
func (d *OwnDriver) Snapshots(ctx context.Context, lease driver.Lease) (all []driver.Snapshot, err error) {
	err = d.own(lease).awake(ctx, func() (err error) { all, err = d.Driver.Snapshots(ctx, lease); return err })
	return all, err
}

// Revert implements driver.Snapshotter.
func (d *OwnDriver) Revert(ctx context.Context, lease driver.Lease, id string) error {
	return d.own(lease).awake(ctx, func() error { return d.Driver.Revert(ctx, lease, id) })
}

// Fork implements driver.Snapshotter: a machine is for one sandbox.
func (d *OwnDriver) Fork(context.Context, driver.Lease, string, driver.Lease) ([]string, error) {
	return nil, driver.ErrUnsupported
}

// Files implements driver.Carrier. The machine is started if it is stopped: the files
// are on its disk.
func (d *OwnDriver) Files(lease driver.Lease) driver.Files {
	return ownFiles{d.Driver.Files(lease), d.own(lease)}
}

// ownFiles are the files of the place. Nothing is started just to measure their
// size.
type ownFiles struct {
	driver.Files
	machine Machine
}

// List implements driver.Files.
func (f ownFiles) List(ctx context.Context) (r io.ReadCloser, err error) {
	err = f.machine.awake(ctx, func() (err error) { r, err = f.Files.List(ctx); return err })
	return r, err
}

// Content implements driver.Files.
func (f ownFiles) Content(ctx context.Context, path string) (r io.ReadCloser, err error) {
	err = f.machine.awake(ctx, func() (err error) { r, err = f.Files.Content(ctx, path); return err })
	return r, err
}

// Refs implements driver.Files.
func (f ownFiles) Refs(ctx context.Context) (refs map[string]string, err error) {
	err = f.machine.awake(ctx, func() (err error) { refs, err = f.Files.Refs(ctx); return err })
	return refs, err
}
