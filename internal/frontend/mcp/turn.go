package mcp

import (
	"context"
	"slices"
	"sync"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// maxWaiting bounds the calls that wait in one session.
const maxWaiting = 1000

// turn lets one call at a time pass, in the order in which they came.
type turn struct {
	mu      sync.Mutex
	busy    bool
	waiting []chan struct{}
}

// take waits for the caller's turn and returns how to give it on.
func (t *turn) take(ctx context.Context) (give func(), err error) {
	t.mu.Lock()
	if !t.busy {
		t.busy = true
		t.mu.Unlock()
		return t.give, nil
	}
	if len(t.waiting) >= maxWaiting {
		t.mu.Unlock()
		return nil, fault.New(fault.Unavailable, "%d calls wait in this session already", maxWaiting).WithHint("wait for their answers")
	}
	mine := make(chan struct{})
	t.waiting = append(t.waiting, mine)
	t.mu.Unlock()
	select {
	case <-mine:
		return t.give, nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if at := slices.Index(t.waiting, mine); at >= 0 {
		t.waiting = slices.Delete(t.waiting, at, at+1)
	} else {
		go t.give() // it became our turn at this very moment
	}
	return nil, fault.Wrap(fault.Canceled, context.Cause(ctx), "the call was canceled before its turn came")
}

func (t *turn) give() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting) == 0 {
		t.busy = false
		return
	}
	close(t.waiting[0])
	t.waiting = t.waiting[1:]
}

func (t *turn) taken() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.busy
}
