package keeper

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// UnreachableWelcome is what a keeper sends instead of [Welcome] while its wire
// is cut: it answers only for itself.
const UnreachableWelcome = '~'

// ErrUnreachable is the answer to a client that wants something of a sandbox
// that does not answer. As far as is known, the sandbox goes on.
func ErrUnreachable(name string, since time.Time, cause error) error {
	text := fmt.Sprintf("cannot reach sandbox %q", name)
	if !since.IsZero() {
		text += ", which has not answered since " + since.Local().Format(time.DateTime)
	}
	err := fault.Wrap("", driver.ErrUnreachable, "%s", text)
	if cause != nil && !errors.Is(cause, driver.ErrUnreachable) {
		err = fault.Wrap("", driver.Joined(driver.ErrUnreachable, cause), "%s", text)
	} else if cause != nil {
		err = fault.Wrap("", cause, "%s", text)
	}
	return err.WithHint("litterbox status %s; it goes on, and litterbox stop %s ends it", name, name)
}

// tether is the keeper's wire across its cuts: the end of a wire is not the end
// of a place.
type tether struct {
	mu    sync.Mutex
	link  *wire.Link    // the newest; it has ended while since is set
	since time.Time     // when it was cut; zero while it is whole
	tied  chan struct{} // closed with the next link
	gone  chan struct{} // closed when the place is known to be lost
}

func newTether() *tether { return &tether{tied: make(chan struct{}), gone: make(chan struct{})} }

// tie takes a fresh link into use, and returns when the one before was cut.
func (t *tether) tie(link *wire.Link) (since time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	since, t.link, t.since = t.since, link, time.Time{}
	close(t.tied)
	t.tied = make(chan struct{})
	return since
}

// cut marks the wire as cut.
func (t *tether) cut() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.since = time.Now()
}

func (t *tether) newest() *wire.Link {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.link
}

// cutSince is when the wire was cut, and zero while it is whole.
func (t *tether) cutSince() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.since
}

// after waits for the link that follows old, and reports false when the place or
// ctx ends instead.
func (t *tether) after(ctx context.Context, old *wire.Link) bool {
	t.mu.Lock()
	tied, there := t.tied, t.link != old
	t.mu.Unlock()
	if there {
		return true
	}
	select {
	case <-ctx.Done():
		return false
	case <-t.gone:
		return false
	case <-tied:
		return true
	}
}

// open opens a stream to the guest, now or never.
func (t *tether) open() (wire.Stream, error) {
	link := t.newest()
	if link == nil {
		return nil, driver.ErrUnreachable
	}
	return link.Open()
}

// reachPatience is how long a client waits for a wire that was cut. It is less
// than clients wait for their keeper's first byte.
const reachPatience = 3 * time.Second

// await opens a stream; after a cut, as soon as the wire is whole again. It
// fails with driver.ErrUnreachable when that takes too long, and with
// driver.ErrMachineLost when there is nothing left to reach.
func (t *tether) await(ctx context.Context) (wire.Stream, error) {
	patience := reachPatience
	if since := t.cutSince(); !since.IsZero() {
		patience -= time.Since(since) // the wait was long enough
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		stream, err := t.open()
		if err == nil {
			return stream, nil
		}
		// A link that has just ended may not be marked as cut yet.
		select {
		case <-t.gone:
			return nil, driver.ErrMachineLost
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-late.C:
			return nil, fault.Wrap("", driver.ErrUnreachable, "cannot open a stream: %v", err)
		case <-time.After(redialSoon):
		}
	}
}

// The times between two attempts to dial.
const (
	redialSoon = 10 * time.Millisecond
	redialLate = 5 * time.Second
	// noteAfter is how long a wire is cut before that is recorded: a dying guest
	// looks the same for a moment.
	noteAfter = 500 * time.Millisecond
	// handshakePatience bounds one attempt.
	handshakePatience = 10 * time.Second
)

// hold keeps the wire until the place is lost, or the keeper ends.
func (k *keeper) hold(ctx context.Context) {
	defer close(k.wire.gone)
	for {
		_ = k.wire.newest().Wait() // why it ended does not matter: the driver says what became of the place
		if ctx.Err() != nil || k.released() {
			return
		}
		k.wire.cut()
		if !k.redial(ctx) {
			return
		}
	}
}

// redial dials until the wire is whole again, or the driver knows that the place
// is lost.
func (k *keeper) redial(ctx context.Context) bool {
	noted := false
	for pause := redialSoon; ctx.Err() == nil && !k.released(); pause = min(2*pause, redialLate) {
		err := k.driver.Attach(ctx, k.driverLease())
		if errors.Is(err, driver.ErrMachineLost) {
			return false
		}
		var link *wire.Link
		if err == nil && k.why() == "" { // a paused place answers no handshake
			brief, cancel := context.WithTimeout(ctx, handshakePatience)
			link, err = k.openWire(brief)
			cancel()
		}
		if link != nil {
			k.reached(ctx, link, noted)
			return true
		}
		since := k.wire.cutSince()
		if !noted && time.Since(since) > noteAfter {
			noted = true
			fmt.Fprintln(os.Stderr, "keeper: the sandbox does not answer:", err)
			k.noteUnreachable(since)
		}
		select {
		case <-ctx.Done():
		case <-k.ended:
		case <-time.After(pause + rand.N(pause/4+1)): // many keepers lose one machine at the same time
		}
	}
	return false
}

// noteUnreachable records that the place does not answer.
func (k *keeper) noteUnreachable(since time.Time) {
	k.mu.Lock()
	k.lease.UnreachableSince = since
	k.mu.Unlock()
	if err := k.renew(sandbox.LeaseActive); err != nil {
		fmt.Fprintln(os.Stderr, "keeper: the lease was not renewed:", err) // the next beat tries again
	}
	k.record(sandbox.EventUnreachable, map[string]string{"since": since.UTC().Format(time.RFC3339Nano)})
}

// reached takes the new link into use and tells the guest again what it must
// know.
func (k *keeper) reached(ctx context.Context, link *wire.Link, noted bool) {
	since := k.wire.tie(link)
	if err := k.tellGuest(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "keeper: the guest was not told of its services again:", err)
	}
	if !noted {
		return
	}
	k.mu.Lock()
	k.lease.UnreachableSince = time.Time{}
	k.mu.Unlock()
	if err := k.renew(sandbox.LeaseActive); err != nil {
		fmt.Fprintln(os.Stderr, "keeper: the lease was not renewed:", err)
	}
	k.record(sandbox.EventReached, map[string]string{"since": since.UTC().Format(time.RFC3339Nano)})
}

// carryNetwork serves the sandbox's network until ctx ends. The handing over of
// connections ends with the wire, and comes back with it.
func (k *keeper) carryNetwork(ctx context.Context) {
	for {
		link, began := k.wire.newest(), time.Now()
		err := k.serveNetwork(ctx)
		if ctx.Err() != nil || k.released() {
			return
		}
		// Without it nothing gets out, and the log in the sandbox's directory
		// says why.
		fmt.Fprintln(os.Stderr, "keeper: the network ended:", err)
		if k.wire.cutSince().IsZero() && time.Since(began) > networkLives {
			continue // only it was cut
		}
		if !k.wire.after(ctx, link) {
			return
		}
	}
}

// networkLives is how long a network must have lived for its end to count as
// passing. One that ends at once is not there.
const networkLives = time.Second
