package remote

import (
	"context"
	"errors"
	"io"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/outpost"
)

// Files implements driver.Carrier.
func (d *Driver) Files(lease driver.Lease) driver.Files {
	return files{d.at(lease.StateDir), place(lease), lease.StateDir}
}

// Forget implements driver.Carrier.
func (d *Driver) Forget(ctx context.Context, lease driver.Lease) error {
	at, err := readWhere(lease.StateDir)
	if err != nil {
		return nil // it has begun nowhere, or nowhere known
	}
	return d.at(lease.StateDir).clear(ctx, outpost.Request{Op: outpost.OpForget, Place: at.place(lease)})
}

// Room implements driver.Retainer. An older outpost says only what is free.
func (d *Driver) Room(ctx context.Context, lease driver.Lease) (driver.Room, error) {
	answer, err := d.at(lease.StateDir).ask(ctx, outpost.Request{Op: outpost.OpStatus})
	if err == nil && answer.Status == nil {
		err = driver.Joined(driver.ErrUnreachable, errors.New("it does not say what it is"))
	}
	if err != nil {
		return driver.Room{}, err
	}
	s := answer.Status
	return driver.Room{Free: s.Free, Total: s.Total, FreeInodes: s.FreeInodes, Inodes: s.Inodes}, nil
}

// clear has a machine remove something. One that sleeps is woken for it, and one that
// is gone has nothing.
func (c *client) clear(ctx context.Context, q outpost.Request) error {
	err := c.awake(ctx, func() error {
		_, err := c.ask(ctx, q)
		return err
	})
	if errors.Is(err, driver.ErrMachineLost) {
		return nil
	}
	return err
}

// awake asks once more after waking a machine that sleeps: the files of its places are
// on its disk.
func (c *client) awake(ctx context.Context, ask func() error) error {
	err := ask()
	sleeper, sleeps := c.machine.(Sleeper)
	if !sleeps || !errors.Is(err, driver.ErrMachineLost) {
		return err
	}
	if err := sleeper.Wake(ctx); err != nil {
		return err
	}
	return ask()
}

// files asks the outpost. It implements driver.Files.
type files struct {
	c     *client
	place outpost.Place
	dir   string // the sandbox's state directory
}

func (f files) stream(ctx context.Context, q outpost.Request) (r io.ReadCloser, err error) {
	q.Place = f.place
	err = f.c.awake(ctx, func() error {
		stream, _, err := f.c.open(ctx, q)
		if err == nil {
			r = stream
		}
		return err
	})
	return r, err
}

// List implements driver.Files.
func (f files) List(ctx context.Context) (io.ReadCloser, error) {
	return f.listing(ctx, outpost.Request{Op: outpost.OpList})
}

// Content implements driver.Files.
func (f files) Content(ctx context.Context, path string) (io.ReadCloser, error) {
	return f.stream(ctx, outpost.Request{Op: outpost.OpContent}.About(path))
}

// ListBut implements driver.PruningFiles.
func (f files) ListBut(ctx context.Context, fold bool, texts [][]byte) (io.ReadCloser, error) {
	size := 0
	for _, text := range texts {
		size += len(text)
	}
	if size > maxRules { // it would not fit into a request
		return f.List(ctx)
	}
	return f.listing(ctx, outpost.Request{Op: outpost.OpList, Rules: &outpost.Rules{Fold: fold, Texts: texts}})
}

// maxRules bounds the rules sent along, in bytes.
const maxRules = 1 << 20

// ListBelow implements driver.PruningFiles.
func (f files) ListBelow(ctx context.Context, path string) (io.ReadCloser, error) {
	return f.stream(ctx, outpost.Request{Op: outpost.OpBelow}.About(path))
}

// Refs implements driver.Files.
func (f files) Refs(ctx context.Context) (map[string]string, error) {
	var answer outpost.Answer
	err := f.c.awake(ctx, func() (err error) {
		answer, err = f.c.ask(ctx, outpost.Request{Op: outpost.OpRefs, Place: f.place})
		return err
	})
	return answer.Refs, err
}

// Size implements driver.Files. No machine is woken just to be measured.
func (f files) Size(ctx context.Context) (changes, home int64, err error) {
	answer, err := f.c.ask(ctx, outpost.Request{Op: outpost.OpSize, Place: f.place})
	return answer.Changes, answer.Home, err
}
