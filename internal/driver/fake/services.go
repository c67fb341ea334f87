package fake

import (
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/service"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// services are the services of one place. Package service decides about them, as
// it does inside a real one; their processes are mere states: "false" crashes at
// once, "true" ends at once, and every other command runs and is ready until it
// is stopped. A backoff is never over, so no test waits for a while.
type services struct {
	mu      sync.Mutex
	units   map[string]*unit
	watch   []chan service.Status
	began   int // launches so far, which stand for process ids
	journal map[string][]wire.LogLine
}

type unit struct {
	spec    service.Spec
	machine service.Machine
	pid     int
	last    *service.Ending
}

func newServices() *services {
	return &services{units: map[string]*unit{}, journal: map[string][]wire.LogLine{}}
}

// configure sets up the services as c says.
func (s *services) configure(c *wire.Configure) (wire.Empty, error) {
	if c == nil {
		return wire.Empty{}, fault.New(fault.Invalid, "cannot configure the guest: the request is empty")
	}
	if err := service.Check(c.Services); err != nil {
		return wire.Empty{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	specs := map[string]service.Spec{}
	for _, spec := range c.Services {
		specs[spec.Name] = spec
		if s.units[spec.Name] == nil {
			s.units[spec.Name] = &unit{machine: service.Machine{State: service.Stopped}}
		}
	}
	for name, u := range s.units {
		spec, known := specs[name]
		switch wanted := known && slices.Contains(c.Wanted, name); {
		case !known:
			s.step(u, service.Stop)
			delete(s.units, name)
			continue
		default:
			u.spec = spec
			u.machine.Restart, u.machine.Reloads = spec.Restart, spec.Signals.Restart != ""
			if wanted && !u.machine.Wanted {
				s.step(u, service.Start)
			} else if !wanted && u.machine.Wanted {
				s.step(u, service.Stop)
			}
		}
	}
	s.settle()
	return wire.Empty{}, nil
}

// order carries out an order. Everything has settled when it answers.
func (s *services) order(o *wire.ServiceOrder) (wire.ServiceList, error) {
	if o == nil || !slices.Contains(service.Wishes(), o.Action) {
		return wire.ServiceList{}, fault.New(fault.Invalid, "cannot do that to a service")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	names := o.Names
	if len(names) == 0 {
		names = s.names()
	}
	event := map[service.Wish]service.Event{
		service.WishStart: service.Start, service.WishStop: service.Stop, service.WishRestart: service.Again,
	}[o.Action]
	list := wire.ServiceList{Services: []service.Status{}}
	for _, name := range names {
		if s.units[name] == nil {
			return list, fault.New(fault.NotFound, "no service named %q in this sandbox", name)
		}
		if event != "" {
			s.step(s.units[name], event)
		}
	}
	s.settle()
	for _, name := range names {
		list.Services = append(list.Services, s.units[name].status())
	}
	return list, nil
}

// names lists all services in the order of starting.
func (s *services) names() []string {
	var specs []service.Spec
	for _, u := range s.units {
		specs = append(specs, u.spec)
	}
	order, _ := service.Order(specs) // checked when they came
	return order
}

// settle starts the services whose needs are now met.
func (s *services) settle() {
	for again := true; again; {
		again = false
		for _, name := range slices.Sorted(maps.Keys(s.units)) {
			u := s.units[name]
			unmet := func(need string) bool { return s.units[need] == nil || s.units[need].machine.State != service.Running }
			if u.machine.State == service.Waiting && !slices.ContainsFunc(u.spec.Needs, unmet) {
				s.step(u, service.Met)
				again = true
			}
		}
	}
}

// step feeds a unit's machine an event, and the events that result from its answer.
func (s *services) step(u *unit, event service.Event) {
	before := u.machine.State
	switch u.machine.Step(event, time.Now()) {
	case service.Launch:
		s.began++
		u.pid = s.began + 1
		s.say(u, "started")
		switch u.spec.Command[0] {
		case "false":
			s.ended(u, 1, service.Crashed)
		case "true":
			s.ended(u, 0, service.Ended)
		default:
			s.step(u, service.Up)
		}
		return
	case service.End:
		u.pid = 0
		s.say(u, "ended")
		s.step(u, service.Gone)
		return
	}
	if u.machine.State != before && u.machine.State.Settled() {
		for _, watcher := range s.watch {
			select {
			case watcher <- u.status():
			default: // a slow reader misses it, as with a real guest
			}
		}
	}
}

func (s *services) ended(u *unit, code int, event service.Event) {
	u.last = &service.Ending{Code: code, At: time.Now()}
	s.step(u, event)
}

// say adds a line to the journal of a unit. Offsets count lines here.
func (s *services) say(u *unit, text string) {
	lines := s.journal[u.spec.Name]
	s.journal[u.spec.Name] = append(lines, wire.LogLine{Time: time.Now(), Own: true, Text: text, Next: int64(len(lines) + 1)})
}

func (u *unit) status() service.Status {
	status := service.Status{Name: u.spec.Name, State: u.machine.State, Wanted: u.machine.Wanted, PID: u.pid, Last: u.last}
	if u.machine.State == service.Backoff {
		status.NextStart = time.Now().Add(service.Delay(u.machine.Failures))
	}
	return status
}

// watched writes the states of services, until the stream ends.
func (s *services) watched(in *wire.Reader, out *wire.Writer) (wire.Empty, error) {
	news, gone := make(chan service.Status, 64), make(chan struct{})
	s.mu.Lock()
	s.watch = append(s.watch, news)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.watch = slices.DeleteFunc(s.watch, func(c chan service.Status) bool { return c == news })
	}()
	go func() {
		defer close(gone)
		for {
			if _, _, err := in.Next(); err != nil {
				return
			}
		}
	}()
	for {
		select {
		case <-gone:
			return wire.Empty{}, nil
		case status := <-news:
			payload, err := json.Marshal(status)
			if err == nil {
				err = out.Frame(wire.KindStdout, payload)
			}
			if err != nil {
				return wire.Empty{}, err
			}
		}
	}
}

// logs answers a query of a journal, but follows none.
func (s *services) logs(query *wire.LogQuery, out *wire.Writer) (wire.LogEnd, error) {
	if query == nil || query.Follow {
		return wire.LogEnd{}, fault.New(fault.Unsupported, "the fake guest does not follow a log")
	}
	s.mu.Lock()
	lines := slices.Clone(s.journal[query.Service])
	s.mu.Unlock()
	end := wire.LogEnd{Next: int64(len(lines))}
	switch {
	case query.From >= 0:
		lines = lines[min(int(query.From), len(lines)):]
	case query.Tail >= 0:
		lines = lines[max(0, len(lines)-query.Tail):]
	}
	payload, err := json.Marshal(wire.LogLines(lines))
	if err == nil {
		err = out.Frame(wire.KindStdout, payload)
	}
	return end, err
}
