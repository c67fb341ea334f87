package libvirt

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// A snapshot is one of the whole domain, inside its own disk: of that disk, and of
// its memory if the domain is on. QEMU writes and reads both, at the same moment of
// the machine.

// lives reports whether the place of a lease runs.
func (d *Driver) lives(ctx context.Context, lease driver.Lease) (bool, error) {
	if len(lease.Handle) == 0 {
		return false, nil
	}
	err := d.Attach(ctx, lease)
	if errors.Is(err, driver.ErrMachineLost) {
		return false, nil
	}
	return err == nil, err
}

// withKept runs do with the record of the domain's snapshots, after leftovers of
// an interrupted call were removed.
func (m Machine) withKept(ctx context.Context, do func(h handle, r *keptRecord) error) error {
	return m.locked(ctx, func() error {
		h, err := readHandle(m.StateDir)
		if err != nil {
			return err
		}
		r, err := readKept(m.StateDir)
		if err != nil {
			return err
		}
		if r.Copying {
			if err := m.stopCopying(ctx, h, &r); err != nil {
				return err
			}
		}
		if r.Pending != "" {
			if err := m.dropPending(ctx, h, &r); err != nil {
				return err
			}
		}
		return do(h, &r)
	})
}

// dropPending removes from disk what the record calls pending.
func (m Machine) dropPending(ctx context.Context, h handle, r *keptRecord) error {
	if _, err := m.known(ctx, h, r); err != nil && !errors.Is(err, driver.ErrMachineLost) {
		return err
	}
	if err := m.forget(ctx, h, r.Pending); err != nil && !errors.Is(err, driver.ErrMachineLost) { // without a disk nothing is left of it
		return err
	}
	r.Pending = ""
	return r.write(m.StateDir)
}

// known returns the state of the domain, after defining it if libvirt has lost it.
// It fails with driver.ErrMachineLost if its disk is gone too.
func (m Machine) known(ctx context.Context, h handle, r *keptRecord) (Answer, error) {
	answer, err := m.ask(ctx, h, OpState)
	if err != nil || answer.State != Lost {
		return answer, err
	}
	if _, err := os.Stat(h.disk()); errors.Is(err, fs.ErrNotExist) {
		return answer, driver.ErrMachineLost
	}
	if err := m.define(ctx, h); err != nil {
		return answer, err
	}
	for _, one := range r.Kept {
		if err := m.redefine(ctx, h, one); err != nil {
			return answer, err
		}
	}
	return m.ask(ctx, h, OpState)
}

func (m Machine) redefine(ctx context.Context, h handle, one kept) error {
	_, err := m.Options.Hypervisor.Do(ctx, Request{Op: OpRedefine, URI: h.URI, UUID: h.UUID, XML: one.XML})
	return err
}

func (h handle) disk() string { return filepath.Join(h.Dir, "state.qcow2") }

// allocated returns how much of the host's disk a file takes, 0 if that is unknown.
func allocated(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Blocks * 512
	}
	return 0
}

// Snapshot implements driver.Snapshotter. A domain that runs stands still while its
// memory is written; a paused one stays paused.
func (d *Driver) Snapshot(ctx context.Context, lease driver.Lease, label string) (taken driver.Snapshot, err error) {
	lives, err := d.lives(ctx, lease)
	if err != nil {
		return taken, err
	}
	m := d.machine(lease)
	err = m.withKept(ctx, func(h handle, r *keptRecord) error {
		one := kept{Label: label}
		if lives {
			one.Handle = lease.Handle
		}
		err := m.keep(context.WithoutCancel(ctx), h, r, &one)
		taken = one.snapshot()
		return err
	})
	return taken, nothingBegun(err)
}

// nothingBegun is the error about snapshots of a sandbox that has no domain.
func nothingBegun(err error) error {
	if errors.Is(err, driver.ErrMachineLost) {
		return fault.Wrap("", driver.ErrNoSnapshot, "the sandbox has no disk in a domain")
	}
	return err
}

// keep takes a snapshot. It is recorded as pending before anything is there.
func (m Machine) keep(ctx context.Context, h handle, r *keptRecord, one *kept) error {
	state, err := m.known(ctx, h, r)
	if err != nil {
		return err
	}
	if err := m.stuck(h, state); err != nil {
		return err
	}
	one.ID, one.CreatedAt, one.On = newID(), time.Now().UTC(), state.State != Off
	if !one.On {
		one.Handle = nil
	}
	r.Pending = one.ID
	if err := r.write(m.StateDir); err != nil {
		return err
	}
	before := allocated(h.disk())
	answer, err := m.Options.Hypervisor.Do(ctx, Request{Op: OpSnapshot, URI: h.URI, UUID: h.UUID, Name: one.ID})
	if err != nil {
		return errors.Join(err, m.dropPending(ctx, h, r))
	}
	one.Bytes, one.XML = max(0, allocated(h.disk())-before), orphaned(answer.Text)
	r.Pending, r.Kept = "", append(r.Kept, *one)
	return r.write(m.StateDir)
}

// Snapshots implements driver.Snapshotter.
func (d *Driver) Snapshots(_ context.Context, lease driver.Lease) ([]driver.Snapshot, error) {
	r, err := readKept(lease.StateDir)
	if err != nil {
		return nil, err
	}
	var all []driver.Snapshot
	for _, one := range r.Kept {
		all = append(all, one.snapshot())
	}
	return all, nil
}

// Revert implements driver.Snapshotter. The domain is ended for it: every link to it
// breaks, and begins with a handshake in the machine that comes back.
func (d *Driver) Revert(ctx context.Context, lease driver.Lease, id string) error {
	lives, err := d.lives(ctx, lease)
	if err != nil {
		return err
	}
	m := d.machine(lease)
	err = m.withKept(ctx, func(h handle, r *keptRecord) error {
		at := r.find(id)
		switch {
		case at < 0:
			return fault.Wrap("", driver.ErrNoSnapshot, "cannot return to the snapshot %q", id)
		case lives && len(r.Kept[at].Handle) == 0:
			return fault.Wrap("", driver.ErrHeld, "cannot return to a snapshot without memory while the sandbox runs")
		}
		d.Hangup(lease.StateDir)
		return m.revert(context.WithoutCancel(ctx), h, r, r.Kept[at])
	})
	return nothingBegun(err)
}

func (m Machine) revert(ctx context.Context, h handle, r *keptRecord, to kept) error {
	state, err := m.known(ctx, h, r)
	if err != nil {
		return err
	}
	if state.State != Off {
		if _, err := m.ask(ctx, h, OpStop); err != nil && !errors.Is(err, driver.ErrMachineLost) {
			return err
		}
	}
	if err := m.unmark(h); err != nil {
		return err
	}
	q := Request{Op: OpRevertOff, URI: h.URI, UUID: h.UUID, Name: to.ID}
	if to.On {
		q.Op = OpRevert
	}
	_, err = m.Options.Hypervisor.Do(ctx, q)
	if errors.Is(err, driver.ErrNoSnapshot) { // libvirt's own record is gone
		if err = m.redefine(ctx, h, to); err == nil {
			_, err = m.Options.Hypervisor.Do(ctx, q)
		}
	}
	if err != nil || !to.On {
		return err
	}
	return m.awaited(ctx, h)
}

// DeleteSnapshot implements driver.Snapshotter. The disk reuses its room and does not
// shrink.
func (d *Driver) DeleteSnapshot(ctx context.Context, lease driver.Lease, id string) error {
	m := d.machine(lease)
	err := m.withKept(ctx, func(h handle, r *keptRecord) error {
		at := r.find(id)
		if at < 0 {
			return nil
		}
		// libvirt forgets nothing in a disk that it does not know.
		_, err := m.known(ctx, h, r)
		if err == nil {
			err = m.redefine(ctx, h, r.Kept[at])
		}
		if err != nil && !errors.Is(err, driver.ErrMachineLost) {
			return err
		}
		r.Pending, r.Kept = id, slices.Delete(r.Kept, at, at+1)
		if err := r.write(m.StateDir); err != nil {
			return err
		}
		return m.dropPending(context.WithoutCancel(ctx), h, r)
	})
	if errors.Is(err, driver.ErrMachineLost) {
		return nil
	}
	return err
}
