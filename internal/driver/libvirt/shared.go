package libvirt

import (
	"context"
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

// Files implements driver.Carrier. The domain is started if it is off: the files
// are on its disk.
func (d *Shared) Files(lease driver.Lease) driver.Files {
	return files{d.Driver.Files(lease), sharedBy(d.options, lease.StateDir)}
}

// awake wakes the domain for a question about files that no place needs.
func (d *Shared) awake(ctx context.Context, lease driver.Lease, ask func() error) error {
	return sharedBy(d.options, lease.StateDir).awake(ctx, ask)
}

// Snapshot implements driver.Snapshotter.
func (d *Shared) Snapshot(ctx context.Context, lease driver.Lease, label string) (taken driver.Snapshot, err error) {
	err = d.awake(ctx, lease, func() (err error) { taken, err = d.Driver.Snapshot(ctx, lease, label); return err })
	return taken, err
}

// Snapshots implements driver.Snapshotter.
func (d *Shared) Snapshots(ctx context.Context, lease driver.Lease) (all []driver.Snapshot, err error) {
	err = d.awake(ctx, lease, func() (err error) { all, err = d.Driver.Snapshots(ctx, lease); return err })
	return all, err
}

// Revert implements driver.Snapshotter.
func (d *Shared) Revert(ctx context.Context, lease driver.Lease, id string) error {
	return d.awake(ctx, lease, func() error { return d.Driver.Revert(ctx, lease, id) })
}

// DeleteSnapshot implements driver.Snapshotter.
func (d *Shared) DeleteSnapshot(ctx context.Context, lease driver.Lease, id string) error {
	return d.awake(ctx, lease, func() error { return d.Driver.DeleteSnapshot(ctx, lease, id) })
}

// Fork implements driver.Snapshotter.
func (d *Shared) Fork(ctx context.Context, from driver.Lease, id string, to driver.Lease) (said []string, err error) {
	err = d.awake(ctx, from, func() (err error) { said, err = d.Driver.Fork(ctx, from, id, to); return err })
	return said, err
}

// Rebranch implements driver.Brancher.
func (d *Shared) Rebranch(ctx context.Context, lease driver.Lease, from, to string) error {
	return d.awake(ctx, lease, func() error { return d.Driver.Rebranch(ctx, lease, from, to) })
}
