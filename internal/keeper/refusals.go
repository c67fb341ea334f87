package keeper

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"

	"github.com/litterbox-sandbox/litterbox/internal/egress"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// refusals records an event for every destination, and for every request where those are seen, that is refused for
// the first time. Writing it never holds up a connection; under a flood of new names events are left out, and the
// observations still have them all.
type refusals struct {
	emit  func(*sandbox.Event) error
	queue chan *sandbox.Event

	mu    sync.Mutex
	known map[string]bool
}

// knownRefusals bounds how many destinations are remembered.
const knownRefusals = 1 << 10

func newRefusals(emit func(*sandbox.Event) error) *refusals {
	return &refusals{emit: emit, queue: make(chan *sandbox.Event, 64), known: map[string]bool{}}
}

func (r *refusals) note(o egress.Observation) {
	if o.Verdict != egress.Denied {
		return
	}
	host, port := o.Host, ""
	if host == "" && o.Addr.IsValid() {
		host = o.Addr.String()
	}
	if o.Port != 0 {
		port = strconv.Itoa(int(o.Port))
	}
	r.mu.Lock()
	key := host + " " + port + " " + o.Method + " " + o.Path
	fresh := !r.known[key] && len(r.known) < knownRefusals
	if fresh {
		r.known[key] = true
	}
	r.mu.Unlock()
	if !fresh {
		return
	}
	data := map[string]string{"host": host, "reason": o.Why}
	for name, value := range map[string]string{"port": port, "method": o.Method, "path": o.Path} {
		if value != "" {
			data[name] = value
		}
	}
	select {
	case r.queue <- &sandbox.Event{Type: sandbox.EventRefused, Data: data}:
	default:
	}
}

// run writes events until ctx ends.
func (r *refusals) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case event := <-r.queue:
			if err := r.emit(event); err != nil {
				fmt.Fprintln(os.Stderr, "keeper:", err)
			}
		}
	}
}
