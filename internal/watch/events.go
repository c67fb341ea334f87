package watch

import (
	"context"

	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// Events hands the events numbered above after to each, oldest first, and then
// new ones, until each returns false or ctx ends; the latter is not an error.
func (h *Hub) Events(ctx context.Context, after uint64, each func(sandbox.Event) bool) error {
	b, err := h.open(nil)
	if err != nil {
		return err
	}
	defer b.close()
	more := true
	take := func(event sandbox.Event) bool {
		if event.Seq > after {
			after = event.Seq
			more = each(event)
		}
		return more
	}
	if err := h.Store.Events(after, take); err != nil || !more {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-b.wake:
		}
		n := b.take()
		if n.err != nil {
			return n.err
		}
		for _, event := range n.events {
			if !take(event) {
				return nil
			}
		}
		if n.behind {
			if err := h.Store.Events(after, take); err != nil || !more {
				return err
			}
		}
	}
}
