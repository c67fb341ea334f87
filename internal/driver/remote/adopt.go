package remote

import (
	"context"
	"errors"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/outpost"
)

// Adopt makes the files of a sandbox those of another one, whose machine is a copy
// of the first one's: the fork of a machine that serves one sandbox. In the copy the
// first one's place ends, and is forgotten. The handle in from is that of the place
// at the moment of the copy. It may be repeated.
func (d *Driver) Adopt(ctx context.Context, from, to driver.Lease) error {
	at, err := readWhere(from.StateDir)
	if err != nil {
		return driver.Seal(err, "cannot read in which machine the sandbox's files are")
	}
	w := begunIn(d.machine(to.StateDir).Name())
	if err := w.write(to.StateDir); err != nil {
		return err
	}
	c := d.at(to.StateDir)
	ask := func(q outpost.Request) (outpost.Answer, error) {
		q.Place = at.place(from)
		stream, answer, err := c.openWithin(ctx, q, keepPatience)
		if err != nil {
			return answer, err
		}
		return answer, stream.Close()
	}
	if len(from.Handle) > 0 {
		if _, err := ask(outpost.Request{Op: outpost.OpDestroy, Force: true}); err != nil {
			return err
		}
	}
	kept, err := ask(outpost.Request{Op: outpost.OpSnapshot})
	if err == nil && len(kept.Snapshots) != 1 {
		err = driver.Joined(driver.ErrUnreachable, errors.New("the outpost does not say what it has kept"))
	}
	if err != nil {
		return err
	}
	if _, err := ask(outpost.Request{Op: outpost.OpFork, Snapshot: kept.Snapshots[0].ID, To: w.place(to)}); err != nil {
		return err
	}
	if _, err := ask(outpost.Request{Op: outpost.OpForget}); err != nil {
		return err
	}
	w.Begun = true
	return w.write(to.StateDir)
}
