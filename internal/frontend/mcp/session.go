package mcp

import (
	"context"
	"crypto/rand"
	"sync"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

const (
	// maxSessions bounds what clients of an HTTP server can make it remember.
	maxSessions = 256
	// idleSession is how long a session over HTTP lasts without a call: its
	// client may have gone without a word.
	idleSession = time.Hour
	// endPatience bounds the wait for commands to end and be committed.
	endPatience = 20 * time.Second
)

// session is one agent at work: it holds at most one sandbox at a time.
type session struct {
	id     string
	engine UseCases
	turn   turn
	ctx    context.Context // ends with the session
	cancel context.CancelFunc

	mu    sync.Mutex
	actor engine.Actor
	hold  *engine.Hold
	jobs  map[int]*job
	last  int // number of the last job
	used  time.Time
	shell []string // that runs commands; nil when not asked yet
	ended bool
}

// identify notes who the client says it is.
func (s *session) identify(name, version string) engine.Actor {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used = time.Now()
	const most = 80 // of what a client calls itself
	if name != "" {
		s.actor.Client, s.actor.Version = oneLine(name, most), oneLine(version, most)
	}
	return s.actor
}

// held gives the sandbox the session works on, after showing that it lives.
func (s *session) held(ctx context.Context) (engine.Hold, error) {
	s.mu.Lock()
	hold := s.hold
	s.mu.Unlock()
	if hold == nil {
		return engine.Hold{}, fault.New(fault.Conflict, "this session works on no sandbox yet").
			WithHint("sandbox-create a new one, or sandbox-open one that sandbox-list shows")
	}
	if err := s.engine.Renew(ctx, *hold); err != nil {
		if kind := fault.KindOf(err); kind == fault.Conflict || kind == fault.NotFound {
			s.drop(hold)
			return engine.Hold{}, fault.Wrap("", err, "this session cannot go on").
				WithHint("sandbox-list shows what there is; sandbox-create makes a new one")
		}
		return engine.Hold{}, err
	}
	return *hold, nil
}

func (s *session) holds() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hold != nil
}

func (s *session) drop(hold *engine.Hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hold == hold {
		s.hold = nil
	}
}

// leave checks that the session may turn to another sandbox.
func (s *session) leave(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hold == nil || s.hold.Name == name {
		return nil
	}
	for _, j := range s.jobs {
		if !j.over() {
			return fault.New(fault.Conflict, "cannot leave sandbox %q: command %d still runs in it", s.hold.Name, j.number).
				WithHint("sandbox-wait for command %d, with stop if it shall end", j.number)
		}
	}
	return nil
}

// take claims a sandbox and gives up the one before.
func (s *session) take(ctx context.Context, dir, name string) (engine.Hold, []string, error) {
	s.mu.Lock()
	actor, before := s.actor, s.hold
	s.mu.Unlock()
	hold, notes, err := s.engine.Hold(ctx, dir, name, actor)
	if err != nil {
		return engine.Hold{}, nil, err
	}
	s.mu.Lock()
	s.hold = &hold
	s.mu.Unlock()
	if before != nil && before.ID != hold.ID {
		if err := s.engine.Release(ctx, *before); err != nil {
			return hold, notes, err
		}
		notes = append(notes, "this session no longer works on "+before.Name)
	}
	return hold, notes, nil
}

// renew shows that the session lives; what is wrong shows at the next call.
func (s *session) renew(ctx context.Context) {
	s.mu.Lock()
	hold := s.hold
	s.mu.Unlock()
	if hold != nil {
		_ = s.engine.Renew(ctx, *hold)
	}
}

// end ends the session's commands, which commits what they did, and gives up
// its sandbox.
func (s *session) end() {
	s.cancel()
	s.mu.Lock()
	s.ended = true
	hold := s.hold
	s.hold = nil
	var running []*job
	for _, j := range s.jobs {
		running = append(running, j)
	}
	s.mu.Unlock()
	patience := time.After(endPatience)
	for _, j := range running {
		select {
		case <-j.done:
		case <-patience:
		}
	}
	if hold != nil {
		// Without its process the hold counts for nothing anyway.
		_ = s.engine.Release(context.Background(), *hold)
	}
}

// idle tells whether nothing has been asked and nothing has run for so long.
func (s *session) idle(now time.Time, limit time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range s.jobs {
		if !j.over() {
			return false
		}
	}
	return now.Sub(s.used) > limit && !s.turn.taken()
}

// registry is the sessions that live.
type registry struct {
	mu     sync.Mutex
	all    map[string]*session
	ending sync.WaitGroup
}

func (r *registry) init() { r.all = map[string]*session{} }

// open makes a session.
func (r *registry) open(e UseCases) (*session, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.all) >= maxSessions {
		return nil, fault.New(fault.Unavailable, "cannot begin a session: %d are open", len(r.all)).
			WithHint("end one of them, or try again later")
	}
	s := &session{id: rand.Text(), engine: e, jobs: map[int]*job{}, used: time.Now()}
	s.actor = engine.Actor{Via: "mcp", Session: s.id}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	r.all[s.id] = s
	return s, nil
}

func (r *registry) get(id string) *session {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all[id]
}

// end forgets a session and ends it.
func (r *registry) end(s *session) {
	r.mu.Lock()
	_, there := r.all[s.id]
	delete(r.all, s.id)
	if there {
		r.ending.Add(1)
	}
	r.mu.Unlock()
	if there {
		defer r.ending.Done()
		s.end()
	}
}

func (r *registry) list() []*session {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []*session
	for _, s := range r.all {
		all = append(all, s)
	}
	return all
}

// keep renews what sessions hold and ends those that nobody uses, until stop,
// which ends them all and waits for it.
func (r *registry) keep(ctx context.Context, e UseCases) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		ticker := time.NewTicker(engine.HoldBeat)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case now := <-ticker.C:
				for _, s := range r.list() {
					if s.idle(now, idleSession) {
						r.end(s)
						continue
					}
					s.renew(ctx)
				}
			}
		}
	}()
	return func() {
		cancel()
		var all sync.WaitGroup
		for _, s := range r.list() {
			all.Go(func() { r.end(s) })
		}
		all.Wait()
		r.ending.Wait()
	}
}
