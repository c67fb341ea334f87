package remote

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/outpost"
)

// begunWith is the golden that a sandbox began with.
type begunWith struct {
	Golden string        `json:"golden"` // its name in the machine
	ID     string        `json:"id"`
	Edits  []driver.Edit `json:"edits,omitempty"`
}

// golden is how the machine knows a golden.
func (w where) golden() outpost.Place {
	return outpost.Place{Sandbox: w.Identity, Identity: w.Identity}
}

// KeepGolden implements driver.GoldenKeeper. The name of the golden in the machine is
// written down before it is there.
func (d *Driver) KeepGolden(ctx context.Context, from, golden driver.Lease, paths []string) (kept driver.Snapshot, err error) {
	here, there := d.machine(from.StateDir).Name(), d.machine(golden.StateDir).Name()
	if here != there {
		return kept, fault.Wrap("", driver.ErrUnsupported, "cannot keep a golden of the machine %q in %q", here, there)
	}
	at, err := readWhere(from.StateDir)
	if err != nil {
		return kept, driver.Seal(err, "cannot read in which machine the sandbox's files are")
	}
	w := begunIn(there)
	if err := w.write(golden.StateDir); err != nil {
		return kept, err
	}
	c := d.at(from.StateDir)
	stream, _, err := c.open(ctx, outpost.Request{Op: outpost.OpKeepGolden, Place: at.place(from), To: w.golden()})
	if err != nil {
		return kept, err
	}
	defer stream.Close()
	ctx, cancel := context.WithTimeout(ctx, keepPatience)
	defer cancel()
	stop := context.AfterFunc(ctx, stream.Abort)
	defer stop()
	var answer outpost.Answer
	_, err = io.WriteString(stream, strings.Join(paths, "\x00"))
	if err = errors.Join(err, stream.CloseWrite()); err == nil {
		err = outpost.ReadMessage(stream, &answer)
	}
	return c.kept(ctx, answer, err)
}

// kept is the golden that an outpost says it has made.
func (c *client) kept(ctx context.Context, answer outpost.Answer, err error) (kept driver.Snapshot, _ error) {
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return kept, fault.Wrap(fault.Canceled, ctx.Err(), "cannot keep a golden")
	case err != nil:
		return kept, c.unreachable(err)
	case answer.Failure != nil:
		return kept, answer.Failure.Err()
	case len(answer.Snapshots) != 1:
		return kept, driver.Joined(driver.ErrUnreachable, errors.New("the outpost does not say what it has kept"))
	}
	return answer.Snapshots[0], nil
}

// WriteGolden implements driver.GoldenKeeper. It makes the machine, as a sandbox does.
func (d *Driver) WriteGolden(ctx context.Context, golden driver.Lease, archive io.Reader) (kept driver.Snapshot, err error) {
	c := d.at(golden.StateDir)
	if err := c.machine.Ensure(ctx); err != nil {
		return kept, err
	}
	w := begunIn(c.machine.Name())
	if err := w.write(golden.StateDir); err != nil {
		return kept, err
	}
	stream, _, err := c.open(ctx, outpost.Request{Op: outpost.OpWriteGolden, To: w.golden()})
	if err != nil {
		return kept, err
	}
	defer stream.Close()
	stop := context.AfterFunc(ctx, stream.Abort)
	defer stop()
	source := &noted{from: archive}
	_, err = io.Copy(stream, source)
	if source.err != nil {
		stream.Abort() // half an archive must not look like a whole one
		return kept, source.err
	}
	if err == nil {
		_ = stream.CloseWrite() // an outpost that has read all of it may be done with the stream
	}
	// An outpost that gives up says why.
	var answer outpost.Answer
	if said := outpost.ReadMessage(stream, &answer); said != nil {
		return c.kept(ctx, answer, errors.Join(err, said))
	}
	return c.kept(ctx, answer, nil)
}

// noted remembers the error that a reader ended with.
type noted struct {
	from io.Reader
	err  error
}

func (n *noted) Read(p []byte) (int, error) {
	read, err := n.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		n.err = err
	}
	return read, err
}

// ReadGolden implements driver.GoldenKeeper.
func (d *Driver) ReadGolden(ctx context.Context, golden driver.Lease, id string) (io.ReadCloser, error) {
	w, err := readWhere(golden.StateDir)
	if err != nil {
		return nil, driver.Seal(err, "cannot read in which machine the golden is")
	}
	stream, _, err := d.at(golden.StateDir).open(ctx, outpost.Request{Op: outpost.OpReadGolden, To: w.golden(), Snapshot: id})
	if err != nil {
		return nil, err
	}
	return ended{stream, context.AfterFunc(ctx, stream.Abort)}, nil
}

// ended is a stream that a context ends.
type ended struct {
	*outpost.Stream
	stop func() bool
}

func (e ended) Close() error {
	e.stop()
	return e.Stream.Close()
}

// BeginWith implements driver.GoldenKeeper.
func (d *Driver) BeginWith(golden driver.Lease, id string, edits []driver.Edit, to driver.Lease) error {
	from, err := readWhere(golden.StateDir)
	if errors.Is(err, fs.ErrNotExist) {
		return fault.Wrap("", driver.ErrNoSnapshot, "the golden is in no machine")
	}
	if err != nil {
		return err
	}
	if there := d.machine(to.StateDir).Name(); there != from.Machine {
		return fault.Wrap("", driver.ErrUnsupported, "cannot begin in the machine %q with a golden of %q", there, from.Machine)
	}
	w := begunIn(from.Machine)
	w.With = &begunWith{Golden: from.Identity, ID: id, Edits: edits}
	return w.write(to.StateDir)
}

// BegunWith implements driver.GoldenKeeper.
func (d *Driver) BegunWith(lease driver.Lease) string {
	if w, err := readWhere(lease.StateDir); err == nil && w.With != nil {
		return w.With.ID
	}
	return ""
}

// DropGolden implements driver.GoldenKeeper.
func (d *Driver) DropGolden(ctx context.Context, golden driver.Lease) error {
	w, err := readWhere(golden.StateDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return d.at(golden.StateDir).clear(ctx, outpost.Request{Op: outpost.OpDropGolden, To: w.golden()})
}

// beginning is the request by which the files of a sandbox begin.
func (w where) beginning(place outpost.Place) outpost.Request {
	q := outpost.Request{Op: outpost.OpBegin, Place: place}
	if w.With != nil {
		q.Op, q.To, q.Snapshot, q.Edits = outpost.OpBeginWith, where{Identity: w.With.Golden}.golden(), w.With.ID, w.With.Edits
	}
	return q
}
