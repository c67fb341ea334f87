package watch

import (
	"context"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/audit"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/store"
)

// Sources are where a [Hub] reads events and output.
type Sources struct {
	Store *store.Store
	Log   *audit.Log
	// Dial connects to the keeper of a sandbox. An error means that it has none.
	Dial func(context.Context, *sandbox.Sandbox) (net.Conn, error)
	// State is the present state of a sandbox, and the agent that holds it; nil
	// is none.
	State func(context.Context, *sandbox.Sandbox) (sandbox.State, *sandbox.Agent)
}

// Hub reads events and output once for all watchers of this process: each log is
// read by one reader, and each sandbox's output comes over one stream. It reads
// nothing while there is no watcher. It is safe for concurrent use.
type Hub struct {
	Sources

	mu    sync.Mutex
	round *round // nil while there is no watcher
}

// round is the time from the first watcher's arrival to the last one's departure.
type round struct {
	hub   *Hub
	begun time.Time
	boxes map[*box]struct{} // guarded by hub.mu
	again chan struct{}     // which sandboxes are watched may have changed

	reading sync.Mutex // held while the logs are read
	log     *audit.Reader
	events  *store.EventReader

	streams map[string]*stream // by id of the sandbox; guarded by hub.mu

	stop    context.CancelFunc
	workers sync.WaitGroup
}

const (
	// pollEvery is how often the logs are checked.
	pollEvery = 50 * time.Millisecond
	// lookEvery is how often a hub looks for sandboxes and keepers that no event
	// has told about.
	lookEvery = 5 * time.Second
)

// open begins to collect from now on. output says which sandboxes' output is
// wanted; nil means none. The caller closes the box.
func (h *Hub) open(output func(*sandbox.Sandbox) bool) (*box, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.round == nil {
		begun, err := h.begin()
		if err != nil {
			return nil, err
		}
		h.round = begun
	}
	b := &box{round: h.round, output: output, wake: make(chan struct{}, 1)}
	h.round.boxes[b] = struct{}{}
	poke(h.round.again)
	return b, nil
}

// begin opens the logs at their ends and begins to follow them.
func (h *Hub) begin() (*round, error) {
	last, err := h.Store.LastEvent()
	if err != nil {
		return nil, err
	}
	log, err := h.Log.Reader(0)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	r := &round{hub: h, begun: time.Now(), boxes: map[*box]struct{}{}, again: make(chan struct{}, 1),
		log: log, events: h.Store.EventReader(last), streams: map[string]*stream{}, stop: stop}
	r.workers.Go(func() { r.run(ctx) })
	return r, nil
}

// close ends a watcher's part. The last one ends the round.
func (b *box) close() {
	r := b.round
	r.hub.mu.Lock()
	delete(r.boxes, b)
	last := len(r.boxes) == 0
	if last && r.hub.round == r {
		r.hub.round = nil
	}
	r.hub.mu.Unlock()
	if last {
		r.stop()
		r.workers.Wait()
		return
	}
	poke(r.again)
}

// run follows everything until the last watcher is gone.
func (r *round) run(ctx context.Context) {
	defer r.log.Close()
	defer r.events.Close()
	var streams sync.WaitGroup
	defer streams.Wait()
	poll, look := time.NewTicker(pollEvery), time.NewTicker(lookEvery)
	defer poll.Stop()
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.again:
			r.look(ctx, &streams)
		case <-look.C:
			r.look(ctx, &streams)
		case <-poll.C:
			if err := r.read(); err != nil {
				r.fail(err)
				return
			}
		}
	}
}

// fail ends every watch of the round. The next watcher begins another.
func (r *round) fail(err error) {
	r.hub.mu.Lock()
	defer r.hub.mu.Unlock()
	if r.hub.round == r {
		r.hub.round = nil
	}
	for b := range r.boxes {
		b.fail(err)
	}
}

// comesUp are the events after which a sandbox may have another keeper.
var comesUp = []sandbox.EventType{sandbox.EventCreated, sandbox.EventStarted, sandbox.EventAttached}

// read hands new log entries to every watcher.
func (r *round) read() error {
	r.reading.Lock()
	defer r.reading.Unlock()
	entries, err := r.log.Next()
	if err != nil {
		return err
	}
	var events []sandbox.Event
	err = r.events.Next(func(event sandbox.Event) bool {
		events = append(events, event)
		return true
	})
	if err != nil || len(entries)+len(events) == 0 {
		return err
	}
	r.hub.mu.Lock()
	defer r.hub.mu.Unlock()
	for b := range r.boxes {
		b.logs(entries, events)
	}
	for _, event := range events {
		if !slices.Contains(comesUp, event.Type) {
			continue
		}
		poke(r.again)
		if s := r.streams[event.SandboxID]; s != nil {
			poke(s.wake)
		}
	}
	return nil
}

// look follows the output of exactly the sandboxes that are watched now. An
// unreadable record is skipped, and an unreadable directory is tried again in a
// moment.
func (r *round) look(ctx context.Context, streams *sync.WaitGroup) {
	r.hub.mu.Lock()
	idle := !r.wanted(nil) && len(r.streams) == 0
	r.hub.mu.Unlock()
	if idle {
		return
	}
	records, _, err := r.hub.Store.Sandboxes()
	if err != nil {
		return
	}
	r.hub.mu.Lock()
	defer r.hub.mu.Unlock()
	found := map[string]bool{}
	for _, record := range records {
		if !r.wanted(record) {
			continue
		}
		found[record.ID] = true
		last := r.begun.UnixNano()
		if before := r.streams[record.ID]; before != nil {
			if before.record.Name == record.Name {
				continue
			}
			before.stop() // it was renamed
			last = before.last
		}
		ctx, stop := context.WithCancel(ctx)
		s := &stream{round: r, record: record, last: last, wake: make(chan struct{}, 1), stop: stop}
		r.streams[record.ID] = s
		streams.Go(func() { s.follow(ctx) })
	}
	for id, s := range r.streams {
		if !found[id] {
			s.stop()
			delete(r.streams, id)
		}
	}
}

// wanted reports whether the output of a sandbox, or with nil any output, is
// wanted. The caller holds the hub's lock.
func (r *round) wanted(record *sandbox.Sandbox) bool {
	for b := range r.boxes {
		if b.output != nil && (record == nil || b.output(record)) {
			return true
		}
	}
	return false
}

// poke wakes the goroutine that waits on a channel of one place.
func poke(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default: // it wakes anyway
	}
}
