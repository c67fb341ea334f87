package guest

import (
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/service"
	"github.com/litterbox-sandbox/litterbox/internal/service/journal"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// supervisor keeps the sandbox's services as they are wanted. Package service
// decides what to do about an event; it is done here (unit_linux.go).
type supervisor struct {
	g *guest

	env atomic.Pointer[[]string] // K=V, from the keeper, for commands too

	mu      sync.Mutex
	units   map[string]*unit
	changed chan struct{}        // closed at the next change of any unit
	watcher func(service.Status) // takes the states of units; nil without a watcher
	closing bool                 // the sandbox ends: nothing more starts
}

// unit is one service. Its fields are guarded by supervisor.mu.
type unit struct {
	spec    service.Spec
	machine service.Machine
	journal *journal.Journal
	gone    bool // no longer configured: forgotten once it has stopped

	run       int    // counts launches, so that late news of an earlier one is recognized
	child     *child // of this run; nil when it could not be started
	output    *outlet
	cancel    func() // ends what watches this run
	startedAt time.Time
	restarts  int
	last      *service.Ending
	problem   string
	nextStart time.Time
}

func newSupervisor(g *guest) *supervisor {
	return &supervisor{g: g, units: map[string]*unit{}, changed: make(chan struct{})}
}

// environment is what every command and service gets besides the sandbox's own.
func (s *supervisor) environment() []string {
	if env := s.env.Load(); env != nil {
		return *env
	}
	return nil
}

// logDir is where the journals lie.
func (s *supervisor) logDir() string { return filepath.Join(s.g.Home, journal.Dir) }

// configure sets up the services as c says. A running service that is still
// wanted goes on as it was started; a changed definition counts from its next
// start.
func (s *supervisor) configure(c *wire.Configure) (wire.Empty, error) {
	if c == nil {
		return wire.Empty{}, fault.New(fault.Invalid, "cannot configure the guest: the request is empty")
	}
	if err := service.Check(c.Services); err != nil {
		return wire.Empty{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.env.Store(&c.Env)
	for _, u := range s.units {
		u.gone = true
	}
	for _, spec := range c.Services {
		u := s.units[spec.Name]
		if u == nil {
			u = &unit{machine: service.Machine{State: service.Stopped}, journal: journal.New(s.logDir(), spec.Name)}
			s.units[spec.Name] = u
		}
		u.spec, u.gone = spec, false
		u.machine.Restart, u.machine.Reloads = spec.Restart, spec.Signals.Restart != ""
	}
	for _, u := range s.units {
		switch wanted := !u.gone && slices.Contains(c.Wanted, u.spec.Name); {
		case wanted && !u.machine.Wanted:
			s.step(u, service.Start)
		case !wanted && u.machine.Wanted:
			s.step(u, service.Stop)
		}
	}
	s.settle()
	return wire.Empty{}, nil
}

// order carries out an order, and with Wait answers when nothing more is about
// to change, or when the client is gone.
func (s *supervisor) order(o *wire.ServiceOrder, gone <-chan struct{}) (wire.ServiceList, error) {
	if o == nil || !slices.Contains(service.Wishes(), o.Action) {
		return wire.ServiceList{}, fault.New(fault.Invalid, "cannot do that to a service")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	names, err := s.names(o.Names)
	if err != nil {
		return wire.ServiceList{}, err
	}
	events := map[service.Wish]service.Event{
		service.WishStart: service.Start, service.WishStop: service.Stop, service.WishRestart: service.Again,
	}
	if event, ok := events[o.Action]; ok {
		if o.Action == service.WishStop {
			slices.Reverse(names)
		}
		for _, name := range names {
			s.step(s.units[name], event)
		}
		s.settle()
	}
	for o.Wait && slices.ContainsFunc(names, func(name string) bool { return s.pending(s.units[name]) }) {
		changed := s.changed
		s.mu.Unlock()
		select {
		case <-changed:
		case <-gone:
			o.Wait = false
		case <-s.g.stop:
			o.Wait = false
		}
		s.mu.Lock()
	}
	list := wire.ServiceList{Services: []service.Status{}}
	if o.Action == service.WishStop {
		slices.Reverse(names)
	}
	for _, name := range names {
		if u := s.units[name]; u != nil {
			list.Services = append(list.Services, u.status())
		}
	}
	return list, nil
}

// names resolves which services are meant, and puts them in order; none means all.
func (s *supervisor) names(asked []string) ([]string, error) {
	order, err := service.Order(s.specs())
	if err != nil {
		return nil, err
	}
	for _, name := range asked {
		if u := s.units[name]; u == nil || u.gone {
			return nil, fault.New(fault.NotFound, "no service named %q in this sandbox", name)
		}
	}
	if len(asked) == 0 {
		return order, nil
	}
	return slices.DeleteFunc(order, func(name string) bool { return !slices.Contains(asked, name) }), nil
}

func (s *supervisor) specs() []service.Spec {
	var specs []service.Spec
	for _, u := range s.units {
		if !u.gone {
			specs = append(specs, u.spec)
		}
	}
	return specs
}

// pending reports whether a unit will change by itself soon. One that waits for
// a unit that rests or is not wanted will not.
func (s *supervisor) pending(u *unit) bool {
	if u == nil {
		return false
	}
	if u.machine.State == service.Waiting && !s.closing {
		return slices.ContainsFunc(u.spec.Needs, func(need string) bool { return s.pending(s.units[need]) })
	}
	return !u.machine.State.Settled()
}

func (u *unit) status() service.Status {
	status := service.Status{
		Name: u.spec.Name, State: u.machine.State, Wanted: u.machine.Wanted, Restarts: u.restarts, Last: u.last,
	}
	if u.machine.Wanted {
		status.Problem = u.problem
	}
	switch u.machine.State {
	case service.Starting, service.Running, service.Stopping:
		if u.child != nil {
			status.PID, status.StartedAt = u.child.pid, u.startedAt
		}
	case service.Backoff:
		status.NextStart = u.nextStart
	}
	return status
}

// settle starts the units whose needs are now met, forgets those no longer
// configured, and wakes all waiters.
func (s *supervisor) settle() {
	for again := true; again; {
		again = false
		for _, name := range slices.Sorted(maps.Keys(s.units)) {
			u := s.units[name]
			if u.machine.State == service.Waiting && !s.closing && !slices.ContainsFunc(u.spec.Needs, s.unmet) {
				again = true
				s.step(u, service.Met)
			}
			if u.gone && u.machine.State == service.Stopped {
				delete(s.units, name)
			}
		}
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *supervisor) unmet(need string) bool {
	u := s.units[need]
	return u == nil || u.machine.State != service.Running
}

// close stops every service, those that others need last. It returns when none
// is left, or at the deadline.
func (s *supervisor) close(deadline time.Time) {
	timeout := time.NewTimer(time.Until(deadline))
	defer timeout.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closing = true
	for {
		live := map[string]*unit{}
		for name, u := range s.units {
			if u.machine.State != service.Stopped && u.machine.State != service.Exited {
				live[name] = u
			}
		}
		if len(live) == 0 {
			return
		}
		for name, u := range live {
			needed := false
			for _, other := range live {
				needed = needed || slices.Contains(other.spec.Needs, name)
			}
			if !needed && u.machine.Wanted {
				s.step(u, service.Stop)
			}
		}
		s.settle()
		changed := s.changed
		if slices.ContainsFunc(slices.Collect(maps.Values(live)), func(u *unit) bool { return u.machine.State == service.Stopped }) {
			continue // it had nothing to end; look again
		}
		s.mu.Unlock()
		select {
		case <-changed:
		case <-timeout.C:
			s.mu.Lock()
			return
		}
		s.mu.Lock()
	}
}

// watchAll sends the states of units until the client goes. There is one
// client, the keeper; a new one takes over.
func (s *supervisor) watchAll(x *exchange) (wire.Empty, error) {
	const room = 256 // how many changes a slow keeper may lag; further ones are dropped
	changes := make(chan service.Status, room)
	s.mu.Lock()
	s.watcher = func(status service.Status) {
		select {
		case changes <- status:
		default:
		}
	}
	for _, u := range s.units { // the states missed before
		if state := u.machine.State; state.Settled() && state != service.Stopped {
			s.watcher(u.status())
		}
	}
	s.mu.Unlock()
	gone := x.gone()
	for {
		select {
		case status := <-changes:
			if err := wire.WriteJSON(x.out, wire.KindStdout, status); err != nil {
				return wire.Empty{}, err
			}
		case <-gone:
			return wire.Empty{}, nil
		case <-s.g.stop:
			return wire.Empty{}, nil
		}
	}
}
