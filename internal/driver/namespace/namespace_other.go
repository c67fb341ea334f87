//go:build !linux

package namespace

import (
	"context"
	"net"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

var errLinux = fault.Wrap("", driver.ErrUnsupported, "the namespace driver needs Linux").
	WithHint("run litterbox inside a Linux machine or VM")

// Capabilities implements driver.Driver: nothing on this system.
func (Driver) Capabilities() driver.Capabilities { return driver.Capabilities{} }

// Acquire implements driver.Driver.
func (Driver) Acquire(context.Context, driver.Spec) (driver.Lease, error) {
	return driver.Lease{}, errLinux
}

// Try says that Linux is missing.
func (Driver) Try() error { return errLinux }

// Attach implements driver.Driver.
func (Driver) Attach(context.Context, driver.Lease) error { return errLinux }

// Dial implements driver.Driver.
func (Driver) Dial(context.Context, driver.Lease) (net.Conn, error) { return nil, errLinux }

// Recover implements driver.Driver.
func (Driver) Recover(context.Context, driver.Lease) ([]string, error) { return nil, errLinux }

// Pause implements driver.Driver.
func (Driver) Pause(context.Context, driver.Lease, string) error { return errLinux }

// Resume implements driver.Driver.
func (Driver) Resume(context.Context, driver.Lease) error { return errLinux }

// Limit implements driver.Driver.
func (Driver) Limit(context.Context, driver.Lease, sandbox.Limits) (driver.InForce, error) {
	return nil, errLinux
}

// CollectMetrics implements driver.Driver.
func (Driver) CollectMetrics(context.Context, driver.Lease) (driver.Metrics, error) {
	return driver.Unmeasured(), errLinux
}

// Destroy implements driver.Driver.
func (Driver) Destroy(context.Context, driver.Lease, bool) error { return errLinux }

// Ownership implements driver.Driver.
func (Driver) Ownership(string) driver.Ownership { return driver.Ownership{UpperUID: -1, UpperGID: -1} }

// Carriage implements driver.Driver; nothing can be acquired anyway.
func (Driver) Carriage(context.Context, string) (sandbox.Carriage, string) {
	return sandbox.CarriageOverlay, ""
}

// Probe says that Linux is missing.
func (Driver) Probe(string) []Finding {
	return []Finding{{Name: "system", Needed: true, Found: "not Linux", Mend: "run litterbox inside a Linux machine or VM"}}
}

// The rest of driver.Snapshotter: nothing can have been frozen here.

// Snapshot implements driver.Driver.
func (Driver) Snapshot(ctx context.Context, lease driver.Lease, label string) (driver.Snapshot, error) {
	return driver.NoSnapshots{}.Snapshot(ctx, lease, label)
}

// Snapshots implements driver.Driver.
func (Driver) Snapshots(ctx context.Context, lease driver.Lease) ([]driver.Snapshot, error) {
	return driver.NoSnapshots{}.Snapshots(ctx, lease)
}

// Revert implements driver.Driver.
func (Driver) Revert(ctx context.Context, lease driver.Lease, id string) error {
	return driver.NoSnapshots{}.Revert(ctx, lease, id)
}

// DeleteSnapshot implements driver.Driver.
func (Driver) DeleteSnapshot(ctx context.Context, lease driver.Lease, id string) error {
	return driver.NoSnapshots{}.DeleteSnapshot(ctx, lease, id)
}

// Fork implements driver.Driver.
func (Driver) Fork(ctx context.Context, from driver.Lease, id string, to driver.Lease) ([]string, error) {
	return driver.NoSnapshots{}.Fork(ctx, from, id, to)
}
