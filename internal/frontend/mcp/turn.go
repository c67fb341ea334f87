package mcp

import (
	"context"
	"slices"
	"sync"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// maxWaiting bounds the calls that wait in one session.
const maxWaiting = 1000

// turn lets one call at a time pass, in order of arrival. A call that only waits
// for a command lends its turn to calls that only read.
type turn struct {
	mu      sync.Mutex
	busy    bool
	lent    bool // the call whose turn it is lets readers pass
	told    func()
	readers int // that passed
	waiting []*waiter
}

// waiter is a call before its turn.
type waiter struct {
	ready  chan struct{}
	reads  bool
	shared bool // it passed as a reader; set before ready is closed
}

// take waits for the caller's turn and returns a function that passes it on. reads
// is true for calls that change nothing.
func (t *turn) take(ctx context.Context, reads bool) (give func(), err error) {
	t.mu.Lock()
	switch {
	case !t.busy:
		t.busy = true
		t.mu.Unlock()
		return t.give, nil
	case t.lent && reads && len(t.waiting) == 0:
		t.readers++
		t.mu.Unlock()
		return t.leave, nil
	case len(t.waiting) >= maxWaiting:
		t.mu.Unlock()
		return nil, fault.New(fault.Unavailable, "%d calls wait in this session already", maxWaiting).WithHint("wait for their answers")
	}
	mine := &waiter{ready: make(chan struct{}), reads: reads}
	t.waiting = append(t.waiting, mine)
	t.mu.Unlock()
	select {
	case <-mine.ready:
		if mine.shared {
			return t.leave, nil
		}
		return t.give, nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch at := slices.Index(t.waiting, mine); {
	case at >= 0:
		t.waiting = slices.Delete(t.waiting, at, at+1)
		t.admit() // readers may have waited behind it
	case mine.shared:
		t.readers-- // it passed at this very moment
	default:
		go t.give() // likewise
	}
	return nil, fault.Wrap(fault.Canceled, context.Cause(ctx), "the call was canceled before its turn came")
}

// lend lets readers pass until the caller takes its turn back.
func (t *turn) lend() (back func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lent = true
	t.admit()
	if t.told != nil {
		t.told()
	}
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.lent = false
	}
}

// onLend has told called whenever the turn is lent; it must not block.
func (t *turn) onLend(told func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.told = told
}

func (t *turn) isLent() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lent
}

// admit lets the readers at the head of the queue pass, while the turn is lent.
func (t *turn) admit() {
	for t.lent && len(t.waiting) > 0 && t.waiting[0].reads {
		first := t.waiting[0]
		t.waiting = t.waiting[1:]
		t.readers++
		first.shared = true
		close(first.ready)
	}
}

// leave ends a reader's call.
func (t *turn) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.readers--
}

func (t *turn) give() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting) == 0 {
		t.busy = false
		return
	}
	close(t.waiting[0].ready)
	t.waiting = t.waiting[1:]
}

func (t *turn) taken() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.busy || t.readers > 0
}
