package egress

import (
	"context"
	"net/netip"
	"sync"
	"time"
)

const (
	lookupKeep    = 10 * time.Second
	lookupEntries = 512
)

// lookups asks the host's resolver once for many connections to one name, and
// keeps answers for a short time. That weakens nothing: every address is
// judged each time it is used.
type lookups struct {
	ask func(ctx context.Context, host string) ([]netip.Addr, error)

	mu    sync.Mutex
	known map[string]*question
}

// question is one question; its answer is there when done is closed.
type question struct {
	done  chan struct{}
	addrs []netip.Addr
	err   error
	until time.Time // zero while it is asked
}

func (l *lookups) find(ctx context.Context, host string) ([]netip.Addr, error) {
	l.mu.Lock()
	one, ok := l.known[host]
	if ok && !one.until.IsZero() && time.Now().After(one.until) {
		ok = false
	}
	if !ok {
		if len(l.known) >= lookupEntries {
			l.shrink()
		}
		one = &question{done: make(chan struct{})}
		l.known[host] = one
		// Not under the first asker's context: others wait for the answer too.
		go l.run(context.WithoutCancel(ctx), host, one)
	}
	l.mu.Unlock()
	select {
	case <-one.done:
		return one.addrs, one.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (l *lookups) run(ctx context.Context, host string, one *question) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	one.addrs, one.err = l.ask(ctx, host)
	l.mu.Lock()
	defer l.mu.Unlock()
	one.until = time.Now().Add(lookupKeep)
	if one.err != nil && l.known[host] == one {
		delete(l.known, host) // the next connection asks again
	}
	close(one.done)
}

// shrink drops old answers, and all answers when that is not enough.
func (l *lookups) shrink() {
	now := time.Now()
	for _, old := range []bool{true, false} {
		for host, one := range l.known {
			if !one.until.IsZero() && (!old || now.After(one.until)) {
				delete(l.known, host)
			}
		}
		if len(l.known) < lookupEntries {
			return
		}
	}
}
