package lima

import (
	"context"
	"errors"
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

// Fork implements driver.Snapshotter: a machine is for one sandbox.
func (d *OwnDriver) Fork(context.Context, driver.Lease, string, driver.Lease) ([]string, error) {
	return nil, driver.ErrUnsupported
}
