package remote

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/outpost"
)

// keepPatience bounds how long an outpost may take to copy what a place has written.
const keepPatience = time.Hour

// keep sends a request about snapshots. A sandbox that has begun nowhere has
// none.
func (d *Driver) keep(ctx context.Context, lease driver.Lease, q outpost.Request) (outpost.Answer, error) {
	at, err := readWhere(lease.StateDir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !at.Begun {
		return outpost.Answer{}, fault.Wrap("", driver.ErrNoSnapshot, "its files have not begun in a machine")
	}
	if err != nil {
		return outpost.Answer{}, err
	}
	q.Place = at.place(lease)
	c := d.at(lease.StateDir)
	var answer outpost.Answer
	err = c.awake(ctx, func() error {
		stream, said, err := c.openWithin(ctx, q, keepPatience)
		if answer = said; err != nil {
			return err
		}
		return stream.Close()
	})
	return answer, err
}

// Snapshot implements driver.Snapshotter: what the place has written is frozen in
// its machine, and nothing of it comes here.
func (d *Driver) Snapshot(ctx context.Context, lease driver.Lease, label string) (driver.Snapshot, error) {
	answer, err := d.keep(ctx, lease, outpost.Request{Op: outpost.OpSnapshot, Reason: label})
	if err == nil && len(answer.Snapshots) != 1 {
		err = driver.Joined(driver.ErrUnreachable, errors.New("the outpost does not say what it has kept"))
	}
	if err != nil {
		return driver.Snapshot{}, err
	}
	return answer.Snapshots[0], nil
}

// Snapshots implements driver.Snapshotter.
func (d *Driver) Snapshots(ctx context.Context, lease driver.Lease) ([]driver.Snapshot, error) {
	answer, err := d.keep(ctx, lease, outpost.Request{Op: outpost.OpSnapshots})
	if errors.Is(err, driver.ErrNoSnapshot) {
		return nil, nil
	}
	return answer.Snapshots, err
}

// Revert implements driver.Snapshotter.
func (d *Driver) Revert(ctx context.Context, lease driver.Lease, id string) error {
	_, err := d.keep(ctx, lease, outpost.Request{Op: outpost.OpRevert, Snapshot: id})
	return err
}

// DeleteSnapshot implements driver.Snapshotter.
func (d *Driver) DeleteSnapshot(ctx context.Context, lease driver.Lease, id string) error {
	_, err := d.keep(ctx, lease, outpost.Request{Op: outpost.OpRelease, Snapshot: id})
	if errors.Is(err, driver.ErrNoSnapshot) || errors.Is(err, driver.ErrMachineLost) {
		return nil
	}
	return err
}

// Fork implements driver.Snapshotter. The second sandbox begins in the machine of
// the first: its identity is written down before its files are there.
func (d *Driver) Fork(ctx context.Context, from driver.Lease, id string, to driver.Lease) ([]string, error) {
	here, there := d.machine(from.StateDir).Name(), d.machine(to.StateDir).Name()
	if here != there {
		return nil, fault.Wrap("", driver.ErrUnsupported, "cannot fork from the machine %q into %q", here, there)
	}
	w := begunIn(here)
	if of, err := readWhere(from.StateDir); err == nil {
		w.With = of.With
	}
	if err := w.write(to.StateDir); err != nil {
		return nil, err
	}
	if _, err := d.keep(ctx, from, outpost.Request{Op: outpost.OpFork, Snapshot: id, To: w.place(to)}); err != nil {
		return nil, err
	}
	w.Begun = true
	return nil, w.write(to.StateDir)
}

// Rebranch implements driver.Brancher.
func (d *Driver) Rebranch(ctx context.Context, lease driver.Lease, from, to string) error {
	_, err := d.keep(ctx, lease, outpost.Request{Op: outpost.OpRebranch, Keys: []string{from, to}})
	return err
}
