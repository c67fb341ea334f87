package libvirt

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/remote"
)

// SharedName is the driver of places in one domain for all sandboxes.
const SharedName = "libvirt-shared"

// Shared is the driver of places that share a domain. It begins with the first of
// them, ends by itself when it is not used, and outlives each of them. Pauses and
// snapshots are those of the places inside: nothing of the domain belongs to one
// sandbox.
type Shared struct {
	*remote.Driver
	options Options
}

// NewShared makes the driver.
func NewShared(options Options) *Shared {
	machine := func(stateDir string) remote.Machine { return sharedBy(options, stateDir) }
	return &Shared{Driver: remote.New(SharedName, Traits(), machine), options: options}
}

// sharedBy returns the domain that the sandbox of a state directory shares.
func sharedBy(options Options, stateDir string) Machine {
	if stateDir == "" {
		return Machine{Options: options, Shared: true}
	}
	return SharedIn(options, driver.Root(stateDir))
}

// SharedIn returns the shared domain of the directory of all state.
func SharedIn(options Options, root string) Machine {
	return Machine{Options: options, Shared: true, StateDir: filepath.Join(root, "machines", Name)}
}

// Capabilities implements driver.Driver. They are those of places on a kernel of
// our image, which need no machine to be known.
func (d *Shared) Capabilities() driver.Capabilities {
	can := d.options.capabilities()
	can.Snapshots = driver.Snapshots{Freeze: true, Live: true}
	return can
}

// Machine implements driver.Hypervised.
func (d *Shared) Machine(ctx context.Context, lease driver.Lease, measured bool) (driver.Machine, error) {
	return sharedBy(d.options, lease.StateDir).hypervised(ctx, measured, d.Driver, lease.StateDir)
}

// Attach implements driver.Driver. A domain that stood still for want of room goes on
// where there is some again.
func (d *Shared) Attach(ctx context.Context, lease driver.Lease) error {
	err := d.Driver.Attach(ctx, lease)
	if errors.Is(err, driver.ErrUnreachable) && sharedBy(d.options, lease.StateDir).wentOn(ctx) {
		err = d.Driver.Attach(ctx, lease)
	}
	return err
}
