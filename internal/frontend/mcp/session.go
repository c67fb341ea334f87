package mcp

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

const (
	// maxSessions bounds how many sessions clients can make an HTTP server
	// remember.
	maxSessions = 256
	// idleSession is how long a session over HTTP lasts without a call: its client
	// may have gone silently.
	idleSession = time.Hour
	// endPatience bounds the wait for commands to end and be committed.
	endPatience = 20 * time.Second
)

// session is one agent at work, in the sandboxes that it has created or opened.
type session struct {
	id     string
	engine UseCases
	turn   turn
	ctx    context.Context // ends with the session
	cancel context.CancelFunc

	mu    sync.Mutex
	actor engine.Actor
	open  []*engine.Hold
	here  *engine.Hold    // where calls go that name none; nil when that one is gone
	left  map[string]bool // names of the sandboxes that it has turned away from
	jobs  map[int]*job
	last  int // number of the last job
	used  time.Time
	shell map[string][]string // that runs commands, by the sandbox's id; none when not asked yet
	ended bool

	history  bool                // it knows why git inside does not show the steps
	proposed map[string]bool     // lines for .gitignore that it has heard of, by the sandbox's id
	standing map[string][]string // notes of the last change, by the sandbox's id
}

// identify notes the client's own name for itself.
func (s *session) identify(name, version string) engine.Actor {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used = time.Now()
	const most = 80 // of a client's name
	if name != "" {
		s.actor.Client, s.actor.Version = oneLine(name, most), oneLine(version, most)
	}
	return s.actor
}

// held gives the sandbox that a call is for, after showing that the session lives.
// name is empty for the one opened last; another sandbox of the session is claimed
// again if it was given up.
func (s *session) held(ctx context.Context, dir, name string) (engine.Hold, error) {
	hold, err := s.find(name)
	if err != nil {
		return engine.Hold{}, err
	}
	if hold == nil {
		return s.again(ctx, dir, name)
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

// find gives a sandbox that the session holds, by its name or the one opened
// last; nil for one that it has given up.
func (s *session) find(name string) (*engine.Hold, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if name == "" && s.here != nil {
		return s.here, nil
	}
	for _, hold := range s.open {
		if hold.Name == name {
			return hold, nil
		}
	}
	switch {
	case s.left[name]:
		return nil, nil
	case name == "" || len(s.open) == 0:
		return nil, fault.New(fault.Conflict, "this session works on no sandbox yet").
			WithHint("sandbox-create a new one, or sandbox-open one that sandbox-list shows")
	}
	return nil, fault.New(fault.NotFound, "this session has not worked in sandbox %q", name).WithHint("sandbox-open it first")
}

// again claims a sandbox that the session has given up, for one call or until it
// turns to another one.
func (s *session) again(ctx context.Context, dir, name string) (engine.Hold, error) {
	s.mu.Lock()
	actor := s.actor
	s.mu.Unlock()
	hold, _, err := s.engine.Hold(ctx, dir, name, actor)
	if err != nil {
		return engine.Hold{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = append(s.open, &hold)
	return hold, nil
}

func (s *session) holds() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open) > 0
}

func (s *session) drop(hold *engine.Hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = slices.DeleteFunc(s.open, func(one *engine.Hold) bool { return one == hold })
	if s.here == hold {
		s.here = nil // another sandbox would be a surprise
	}
}

// take claims a sandbox, to which calls go from now on, and gives up those in
// which no command of the session runs.
func (s *session) take(ctx context.Context, dir, name string) (engine.Hold, []string, error) {
	s.mu.Lock()
	actor := s.actor
	s.mu.Unlock()
	hold, notes, err := s.engine.Hold(ctx, dir, name, actor)
	if err != nil {
		return engine.Hold{}, nil, err
	}
	s.mu.Lock()
	var idle []*engine.Hold
	kept := s.open[:0:0]
	for _, one := range s.open {
		switch {
		case one.ID == hold.ID:
		case s.runs(one.ID):
			kept = append(kept, one)
		default:
			idle = append(idle, one)
		}
		if one.ID != hold.ID && !s.left[one.Name] {
			notes = append(notes, fmt.Sprintf("calls go to %s now; name %s as sandbox to reach it", hold.Name, one.Name))
			s.left[one.Name] = true
		}
	}
	s.open, s.here = append(kept, &hold), &hold
	s.mu.Unlock()
	for _, one := range idle {
		if err := s.engine.Release(ctx, *one); err != nil {
			return hold, notes, err
		}
	}
	return hold, notes, nil
}

// runs reports whether a command of the session runs in a sandbox. The caller
// holds s.mu.
func (s *session) runs(id string) bool {
	for _, j := range s.jobs {
		if j.hold.ID == id && !j.over() {
			return true
		}
	}
	return false
}

// renew shows that the session lives; an error shows at the next call.
func (s *session) renew(ctx context.Context) {
	s.mu.Lock()
	open := slices.Clone(s.open)
	s.mu.Unlock()
	for _, hold := range open {
		_ = s.engine.Renew(ctx, *hold)
	}
}

// end ends the session's commands, which commits their work, and gives up its
// sandboxes.
func (s *session) end() {
	s.cancel()
	s.mu.Lock()
	s.ended = true
	open := s.open
	s.open, s.here = nil, nil
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
	for _, hold := range open {
		// Without its process the hold counts for nothing anyway.
		_ = s.engine.Release(context.WithoutCancel(s.ctx), *hold)
	}
}

// idle reports whether for that long nothing was asked and nothing ran.
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
	base   context.Context // has the caller of all sessions, and never ends
	all    map[string]*session
	ending sync.WaitGroup
}

func (r *registry) init(ctx context.Context) {
	r.base, r.all = context.WithoutCancel(ctx), map[string]*session{}
}

// open makes a session.
func (r *registry) open(e UseCases) (*session, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.all) >= maxSessions {
		return nil, fault.New(fault.Unavailable, "cannot begin a session: %d are open", len(r.all)).
			WithHint("end one of them, or try again later")
	}
	s := &session{id: rand.Text(), engine: e, jobs: map[int]*job{}, shell: map[string][]string{}, left: map[string]bool{}, proposed: map[string]bool{}, standing: map[string][]string{}, used: time.Now()}
	s.actor = engine.Actor{Via: "mcp", Session: s.id}
	s.ctx, s.cancel = context.WithCancel(r.base)
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

// keep renews the holds of sessions and ends unused sessions, until stop, which
// ends them all and waits for it.
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
