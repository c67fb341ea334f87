package libvirt

import (
	"context"
	"errors"
	"slices"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// Fork implements driver.Snapshotter: the second sandbox has a domain of its own, on
// a copy of the first one's disk, which comes up at the snapshot. There its place ends
// and the files become the second one's. What ran at the snapshot may run for that
// moment. The domain ends by itself when it is not used.
func (d *Driver) Fork(ctx context.Context, from driver.Lease, id string, to driver.Lease) ([]string, error) {
	m, other := d.machine(from), d.machine(to)
	ctx = context.WithoutCancel(ctx)
	var copied handle
	var whose original
	var all []kept
	err := m.withKept(ctx, func(h handle, r *keptRecord) (err error) {
		at := r.find(id)
		if at < 0 {
			return fault.Wrap("", driver.ErrNoSnapshot, "cannot fork the snapshot %q", id)
		}
		from.Handle, whose, all = r.Kept[at].Handle, m.original(h), slices.Clone(r.Kept)
		if copied, err = other.beside(h); err != nil {
			return err
		}
		return m.copyDisk(ctx, h, r, copied.disk())
	})
	if err == nil { // no one else knows the copy
		err = other.comeUp(ctx, copied, whose, all, id)
	}
	if err == nil {
		err = d.Adopt(ctx, from, to)
	}
	if err != nil {
		d.Hangup(to.StateDir)
		return nil, errors.Join(nothingBegun(err), other.Forget(ctx))
	}
	return nil, nil
}

// beside records the domain of a copy, before anything of it is there.
func (m Machine) beside(h handle) (handle, error) {
	h.UUID = newUUID()
	h.Dir = m.dir(h.URI, h.UUID)
	if err := h.write(m.StateDir); err != nil {
		return h, err
	}
	return h, m.makeDir(h)
}
