package libvirt

import (
	"context"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
)

// Snapshots are declared by no domain yet: neither those of files, which an outpost
// could keep, nor those of disk and memory, which libvirt keeps.

// Snapshot implements driver.Snapshotter.
func (d *Driver) Snapshot(ctx context.Context, lease driver.Lease, label string) (driver.Snapshot, error) {
	return driver.NoSnapshots{}.Snapshot(ctx, lease, label)
}

// Snapshots implements driver.Snapshotter.
func (d *Driver) Snapshots(ctx context.Context, lease driver.Lease) ([]driver.Snapshot, error) {
	return driver.NoSnapshots{}.Snapshots(ctx, lease)
}

// Revert implements driver.Snapshotter.
func (d *Driver) Revert(ctx context.Context, lease driver.Lease, id string) error {
	return driver.NoSnapshots{}.Revert(ctx, lease, id)
}

// DeleteSnapshot implements driver.Snapshotter.
func (d *Driver) DeleteSnapshot(ctx context.Context, lease driver.Lease, id string) error {
	return driver.NoSnapshots{}.DeleteSnapshot(ctx, lease, id)
}

// Fork implements driver.Snapshotter.
func (d *Driver) Fork(ctx context.Context, from driver.Lease, id string, to driver.Lease) ([]string, error) {
	return driver.NoSnapshots{}.Fork(ctx, from, id, to)
}
