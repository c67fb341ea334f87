package container

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/outpost"
	"github.com/litterbox-sandbox/litterbox/internal/process"
)

// Bridge is an Engine in a process of its own for each order: the program that
// users type links no client library, which would slow down each of its starts.
type Bridge struct {
	// Start opens the program that has one, and returns the environment for it.
	// Name is its argv[0].
	Start func() (program *os.File, env []string, err error)
	Name  string
}

// Do implements Engine.
func (b Bridge) Do(ctx context.Context, order Order, progress func(Progress)) (Reply, error) {
	conn, err := b.start(ctx, order)
	if err != nil {
		return Reply{}, err
	}
	reply, err := conn.reply(ctx, progress)
	return reply, errors.Join(err, conn.Close())
}

// Dial implements Engine.
func (b Bridge) Dial(ctx context.Context, order Order) (io.ReadWriteCloser, error) {
	conn, err := b.start(ctx, order)
	if err != nil {
		return nil, err
	}
	if _, err := conn.reply(ctx, nil); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// bridged is a process that carries out an order. It ends with its input.
type bridged struct {
	in  *os.File // the process reads it
	out *os.File
}

func (b Bridge) start(ctx context.Context, order Order) (_ *bridged, err error) {
	failed := func(err error) error {
		return driver.Joined(driver.ErrUnreachable, fault.Wrap(fault.Unavailable, err, "cannot start the program that speaks with %s", order.Kind.Title()))
	}
	program, env, err := b.Start()
	if err != nil {
		return nil, failed(err)
	}
	defer program.Close()
	input, in, err := os.Pipe()
	if err != nil {
		return nil, failed(err)
	}
	defer input.Close()
	out, output, err := os.Pipe()
	if err != nil {
		return nil, failed(errors.Join(err, in.Close()))
	}
	defer output.Close()
	conn := &bridged{in: in, out: out}
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return nil, failed(errors.Join(err, conn.Close()))
	}
	defer null.Close()
	child, err := process.Start(program, []string{b.Name}, &os.ProcAttr{Dir: "/", Env: env, Files: []*os.File{input, output, null}})
	if err != nil {
		return nil, failed(errors.Join(err, conn.Close()))
	}
	go func() { _, _ = child.Wait() }() // it ends with its streams; nothing else matters
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	if err := outpost.WriteMessage(in, order); err != nil {
		return nil, failed(errors.Join(err, conn.Close()))
	}
	return conn, nil
}

// reply reads up to the last reply.
func (c *bridged) reply(ctx context.Context, progress func(Progress)) (Reply, error) {
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	for {
		var reply Reply
		err := outpost.ReadMessage(c.out, &reply)
		switch {
		case ctx.Err() != nil:
			return reply, fault.Wrap(fault.Canceled, ctx.Err(), "cannot wait for the engine")
		case err != nil:
			return reply, driver.Joined(driver.ErrUnreachable, errors.New("the program that speaks with the engine ended"))
		case reply.Progress != nil:
			if progress != nil {
				progress(*reply.Progress)
			}
			continue
		}
		return reply, reply.Failure.Err()
	}
}

func (c *bridged) Read(p []byte) (int, error)  { return c.out.Read(p) }
func (c *bridged) Write(p []byte) (int, error) { return c.in.Write(p) }

// Close implements io.Closer. A second call does nothing.
func (c *bridged) Close() error {
	err := errors.Join(c.in.Close(), c.out.Close())
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}

// Carry is the other end of a Bridge: it carries out the one order that comes, and
// then relays the order's stream.
func Carry(ctx context.Context, engine Engine, in io.Reader, out io.WriteCloser) error {
	var order Order
	if err := outpost.ReadMessage(in, &order); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if order.Op != OpDial {
		go func() { // a bridge that is gone wants nothing more
			_, _ = io.Copy(io.Discard, in)
			cancel()
		}()
		reply, err := engine.Do(ctx, order, func(p Progress) { _ = outpost.WriteMessage(out, Reply{Progress: &p}) })
		if err != nil {
			reply = Reply{Failure: outpost.FailureOf(err)}
		}
		return outpost.WriteMessage(out, reply)
	}
	conn, err := engine.Dial(ctx, order)
	if err != nil {
		return outpost.WriteMessage(out, Reply{Failure: outpost.FailureOf(err)})
	}
	defer conn.Close()
	if err := outpost.WriteMessage(out, Reply{}); err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(conn, in) // the end of either direction is that of the link
		_ = conn.Close()
	}()
	_, err = io.Copy(out, conn)
	return errors.Join(err, out.Close())
}
