package remote

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/outpost"
)

// client speaks with one outpost over a link of its own, which is dialled when needed,
// or for questions over one that a keeper lends. Both are closed when idle.
type client struct {
	machine Machine
	keeps   *atomic.Bool // the driver's

	mu   sync.Mutex // held while a link is made
	own  atomic.Pointer[outpost.Link]
	lent atomic.Pointer[outpost.Link]
	keys map[string]string // of directories and programs that were sent, by path; guarded by mu
}

// at returns the client for a sandbox's machine.
func (d *Driver) at(stateDir string) *client {
	machine := d.machine(stateDir)
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.clients[machine.Name()]
	if c == nil {
		c = &client{machine: machine, keeps: &d.keeps, keys: map[string]string{}}
		d.clients[machine.Name()] = c
	}
	return c
}

// idle is how long a link without streams stays open.
const idle = 20 * time.Second

// patience bounds how long an outpost may take to answer when the caller sets no
// bound. A start that brings up a large place takes seconds.
const patience = 2 * time.Minute

// dial returns a link of its own that is whole, as far as is known.
func (c *client) dial(ctx context.Context) (*outpost.Link, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if link := whole(&c.own); link != nil {
		return link, nil
	}
	conn, err := c.machine.Dial(ctx)
	if err != nil {
		return nil, err
	}
	return c.use(&c.own, outpost.Dialled(conn)), nil
}

// whole returns a link that has not ended, as far as is known, or nil.
func whole(one *atomic.Pointer[outpost.Link]) *outpost.Link {
	if link := one.Load(); link != nil && !link.Ended() {
		return link
	}
	return nil
}

// use keeps a link until it is idle.
func (c *client) use(one *atomic.Pointer[outpost.Link], link *outpost.Link) *outpost.Link {
	one.Store(link)
	time.AfterFunc(idle, func() { c.relax(one, link) })
	return link
}

// relax closes a link that nothing uses.
func (c *client) relax(one *atomic.Pointer[outpost.Link], link *outpost.Link) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case link.Ended():
	case link.Streams() == 0:
		one.CompareAndSwap(link, nil)
		_ = link.Close() // nothing is under way on it
	default:
		time.AfterFunc(idle, func() { c.relax(one, link) })
	}
}

// open sends a request and reads the first answer. The stream goes on, and is the
// caller's to close; nothing else ends it. A link that was open before may have
// ended unnoticed, with the machine: a request that only asks is sent once more.
// So is one over a link that was lent: it goes over a link of this client's own.
func (c *client) open(ctx context.Context, q outpost.Request) (*outpost.Stream, outpost.Answer, error) {
	return c.openWithin(ctx, q, patience)
}

func (c *client) openWithin(ctx context.Context, q outpost.Request, patience time.Duration) (*outpost.Stream, outpost.Answer, error) {
	if relayed(q.Op) {
		if link := c.borrow(ctx); link != nil {
			stream, answer, err := c.openOn(ctx, link, q, patience)
			if err == nil || answer.Failure != nil || ctx.Err() != nil {
				return stream, answer, err
			}
			c.giveBack(link)
		}
	}
	before := c.own.Load()
	link, err := c.dial(ctx)
	if err != nil {
		return nil, outpost.Answer{}, err
	}
	stream, answer, err := c.openOn(ctx, link, q, patience)
	if errors.Is(err, driver.ErrUnreachable) && asks(q.Op) && link == before && link.Ended() && ctx.Err() == nil {
		if link, err = c.dial(ctx); err != nil {
			return nil, outpost.Answer{}, err
		}
		stream, answer, err = c.openOn(ctx, link, q, patience)
	}
	return stream, answer, err
}

// asks reports whether an operation changes nothing.
func asks(op outpost.Op) bool {
	return slices.Contains([]outpost.Op{
		outpost.OpStatus, outpost.OpMeet, outpost.OpHave, outpost.OpAttach, outpost.OpDial, outpost.OpMetrics, outpost.OpList, outpost.OpBelow, outpost.OpContent, outpost.OpRefs, outpost.OpSize,
		outpost.OpPlaces, outpost.OpUsage,
	}, op)
}

func (c *client) openOn(ctx context.Context, link *outpost.Link, q outpost.Request, patience time.Duration) (*outpost.Stream, outpost.Answer, error) {
	var answer outpost.Answer
	stream, err := link.Open()
	if err != nil {
		return nil, answer, c.unreachable(err)
	}
	if err := c.converse(ctx, stream, q, &answer, patience); err != nil {
		_ = stream.Close() // it adds nothing to the error
		return nil, answer, err
	}
	return stream, answer, nil
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
