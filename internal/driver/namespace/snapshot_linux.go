package namespace

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/local"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/frozen"
)

// box holds what a sandbox writes. For one that never ran, the record says how
// its workspace is carried.
func (d Driver) box(lease driver.Lease) (b frozen.Box, place handle, err error) {
	own := d.Ownership(lease.SandboxID)
	b = frozen.Box{Dir: lease.StateDir, Owner: frozen.Owner{UID: own.UpperUID, GID: own.UpperGID}}
	if len(lease.Handle) > 0 {
		if place, err = local.Place[handle](lease); err != nil {
			return b, place, err
		}
	}
	b.Whole = place.Whole
	if len(place.Layers) == 0 && !b.Whole { // it never ran, or a program without snapshots started it
		_, err := os.Lstat(filepath.Join(lease.StateDir, "work"))
		r, readErr := frozen.Read(lease.StateDir)
		if readErr != nil {
			return b, place, readErr
		}
		b.Whole = r.Whole || len(r.Stack) == 0 && errors.Is(err, fs.ErrNotExist)
	}
	return b, place, nil
}

// Snapshot implements driver.Driver: by a rename if nothing runs. A running
// place is paused while the new files are copied.
func (d Driver) Snapshot(ctx context.Context, lease driver.Lease, label string) (s driver.Snapshot, err error) {
	b, place, err := d.box(lease)
	if err != nil {
		return s, err
	}
	live := place.Guest.PID != 0 && place.lives()
	if live && !place.paused(lease.StateDir) {
		if err := d.Pause(ctx, lease, label); err != nil {
			return s, err
		}
		defer func() { err = errors.Join(err, d.Resume(ctx, lease)) }()
	}
	kept, err := b.Snapshot(label, live)
	if err != nil {
		return s, driver.Seal(err, "cannot take a snapshot")
	}
	return place.snapshot(lease, b, kept), nil
}

// snapshot describes a kept state for the boundary.
func (h handle) snapshot(lease driver.Lease, b frozen.Box, kept frozen.Kept) driver.Snapshot {
	s := driver.Snapshot{ID: kept.ID, Label: kept.Label, CreatedAt: kept.CreatedAt}
	if !b.Whole {
		s.Layers = append(frozen.LayersOf(lease.StateDir, kept.Stack).Upper, h.Layers...)
	}
	return s
}

// Snapshots implements driver.Driver.
func (d Driver) Snapshots(_ context.Context, lease driver.Lease) ([]driver.Snapshot, error) {
	b, place, err := d.box(lease)
	if err != nil {
		return nil, err
	}
	r, err := frozen.Read(lease.StateDir)
	if err != nil {
		return nil, driver.Seal(err, "cannot list snapshots")
	}
	var all []driver.Snapshot
	for _, kept := range r.Kept {
		all = append(all, place.snapshot(lease, b, kept))
	}
	return all, nil
}

// Revert implements driver.Driver. Mounted files cannot be exchanged below
// running processes.
func (d Driver) Revert(_ context.Context, lease driver.Lease, id string) error {
	b, place, err := d.box(lease)
	if err != nil {
		return err
	}
	r, err := frozen.Read(lease.StateDir)
	if err != nil {
		return driver.Seal(err, "cannot return to a snapshot")
	}
	if !r.Has(id) {
		return fault.Wrap("", driver.ErrNoSnapshot, "cannot return to the snapshot %q", id)
	}
	if place.Guest.PID != 0 && place.lives() {
		return fault.Wrap("", driver.ErrHeld, "cannot return to a snapshot while the sandbox runs")
	}
	if err := b.Revert(id); err != nil {
		return driver.Seal(err, "cannot return to a snapshot")
	}
	return nil
}

// DeleteSnapshot implements driver.Driver. frozen.Sweep, which knows all
// sandboxes, removes its layers.
func (d Driver) DeleteSnapshot(_ context.Context, lease driver.Lease, id string) error {
	b, _, err := d.box(lease)
	if err != nil {
		return err
	}
	if err := b.Delete(id); err != nil {
		return driver.Seal(err, "cannot delete a snapshot")
	}
	return nil
}

// Fork implements driver.Driver.
func (d Driver) Fork(_ context.Context, from driver.Lease, id string, to driver.Lease) ([]string, error) {
	b, place, err := d.box(from)
	if err != nil {
		return nil, err
	}
	r, err := b.Settled()
	if err != nil {
		return nil, driver.Seal(err, "cannot fork")
	}
	if !r.Has(id) {
		return nil, fault.Wrap("", driver.ErrNoSnapshot, "cannot fork the snapshot %q", id)
	}
	own := d.Ownership(to.SandboxID)
	other := frozen.Box{Dir: to.StateDir, Owner: frozen.Owner{UID: own.UpperUID, GID: own.UpperGID}, Whole: b.Whole}
	if err := b.Fork(id, other); err != nil {
		return nil, driver.Seal(err, "cannot fork")
	}
	if b.Whole {
		return nil, nil
	}
	made, err := frozen.Read(to.StateDir)
	if err != nil {
		return nil, driver.Seal(err, "cannot fork")
	}
	return append(frozen.LayersOf(to.StateDir, made.Stack).Upper, place.Layers...), nil
}
