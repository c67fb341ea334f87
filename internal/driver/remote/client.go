package remote

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/outpost"
)

// client speaks with one outpost over one link, which is dialled when needed
// and closed when idle.
type client struct {
	machine Machine

	mu   sync.Mutex
	link *outpost.Link
	rest *time.Timer
	keys map[string]string // of directories and programs that were sent, by path
}

// at returns the client for a sandbox's machine.
func (d *Driver) at(stateDir string) *client {
	machine := d.machine(stateDir)
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.clients[machine.Name()]
	if c == nil {
		c = &client{machine: machine, keys: map[string]string{}}
		d.clients[machine.Name()] = c
	}
	return c
}

// idle is how long a link without streams stays open.
const idle = 20 * time.Second

// patience bounds how long an outpost may take to answer when the caller sets no
// bound. A start that brings up a large place takes seconds.
const patience = 2 * time.Minute

// dial returns a link that is whole, as far as is known.
func (c *client) dial(ctx context.Context) (*outpost.Link, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link != nil && !c.link.Ended() {
		return c.link, nil
	}
	conn, err := c.machine.Dial(ctx)
	if err != nil {
		return nil, err
	}
	c.link = outpost.Dialled(conn)
	if c.rest != nil {
		c.rest.Stop()
	}
	c.rest = time.AfterFunc(idle, c.relax)
	return c.link, nil
}

// relax closes a link that nothing uses.
func (c *client) relax() {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.link == nil || c.link.Ended():
	case c.link.Streams() == 0:
		_ = c.link.Close() // nothing is under way on it
		c.link = nil
	default:
		c.rest.Reset(idle)
	}
}

// open sends a request and reads the first answer. The stream goes on, and is the
// caller's to close; nothing else ends it. A link that was open before may have
// ended unnoticed, with the machine: a request that only asks is sent once more.
func (c *client) open(ctx context.Context, q outpost.Request) (*outpost.Stream, outpost.Answer, error) {
	return c.openWithin(ctx, q, patience)
}

func (c *client) openWithin(ctx context.Context, q outpost.Request, patience time.Duration) (*outpost.Stream, outpost.Answer, error) {
	c.mu.Lock()
	before := c.link
	c.mu.Unlock()
	link, stream, answer, err := c.openOnce(ctx, q, patience)
	if errors.Is(err, driver.ErrUnreachable) && asks(q.Op) && link != nil && link == before && link.Ended() && ctx.Err() == nil {
		_, stream, answer, err = c.openOnce(ctx, q, patience)
	}
	return stream, answer, err
}

// asks reports whether an operation changes nothing.
func asks(op outpost.Op) bool {
	return slices.Contains([]outpost.Op{
		outpost.OpStatus, outpost.OpMeet, outpost.OpHave, outpost.OpAttach, outpost.OpDial, outpost.OpMetrics, outpost.OpList, outpost.OpContent, outpost.OpRefs, outpost.OpSize,
		outpost.OpPlaces, outpost.OpUsage,
	}, op)
}

func (c *client) openOnce(ctx context.Context, q outpost.Request, patience time.Duration) (*outpost.Link, *outpost.Stream, outpost.Answer, error) {
	var answer outpost.Answer
	link, err := c.dial(ctx)
	if err != nil {
		return nil, nil, answer, err
	}
	stream, err := link.Open()
	if err != nil {
		return link, nil, answer, c.unreachable(err)
	}
	if err := c.converse(ctx, stream, q, &answer, patience); err != nil {
		_ = stream.Close() // it adds nothing to the error
		return link, nil, answer, err
	}
	return link, stream, answer, nil
}

// converse sends q and reads the answer, within the bounds of ctx and patience.
func (c *client) converse(ctx context.Context, stream *outpost.Stream, q outpost.Request, answer *outpost.Answer, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { stream.Abort() })
	defer stop()
	err := outpost.WriteMessage(stream, q)
	if err == nil {
		err = outpost.ReadMessage(stream, answer)
	}
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return fault.Wrap(fault.Canceled, ctx.Err(), "cannot ask the machine %q", c.machine.Name())
	case err != nil:
		return c.unreachable(err)
	}
	return answer.Failure.Err()
}

// ask is open for a request with one answer.
func (c *client) ask(ctx context.Context, q outpost.Request) (outpost.Answer, error) {
	stream, answer, err := c.open(ctx, q)
	if err != nil {
		return answer, err
	}
	return answer, stream.Close()
}

func (c *client) unreachable(err error) error {
	if fault.KindOf(err) == fault.Unsupported { // another version
		return err
	}
	return fault.Wrap("", driver.Joined(driver.ErrUnreachable, err), "cannot reach the machine %q", c.machine.Name())
}
