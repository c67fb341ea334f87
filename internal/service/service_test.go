package service_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/service"
)

func specs(text string) []service.Spec {
	var specs []service.Spec
	for _, line := range strings.Fields(text) {
		name, needs, _ := strings.Cut(line, ":")
		s := service.Spec{Name: name}
		if needs != "" {
			s.Needs = strings.Split(needs, ",")
		}
		specs = append(specs, s)
	}
	return specs
}

func TestOrder(t *testing.T) {
	for _, c := range []struct{ services, want string }{
		{"", ""},
		{"c b a", "a b c"},
		{"web:api api:db,cache db cache", "cache db api web"},
		{"a:d b c:b d:c", "b c d a"},
		{"a:missing", "a"},
	} {
		order, err := service.Order(specs(c.services))
		if got := strings.Join(order, " "); got != c.want || err != nil {
			t.Errorf("%s: %q, %v, want %q", c.services, got, err, c.want)
		}
	}
	for _, circle := range []string{"a:a", "a:b b:a", "x a:b b:c c:a"} {
		if err := service.Check(specs(circle)); fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "a needs") {
			t.Errorf("%s: %v", circle, err)
		}
	}
	if err := service.Check(specs("a:b")); fault.KindOf(err) != fault.Invalid {
		t.Errorf("an unknown need: %v", err)
	}
}

func TestWithNeeds(t *testing.T) {
	all := specs("web:api api:db,cache db cache other:db")
	for name, want := range map[string]string{"web": "cache db api web", "db": "db", "other": "db other"} {
		if got := strings.Join(service.WithNeeds(all, name), " "); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestValidName(t *testing.T) {
	for name, want := range map[string]bool{
		"web": true, "a": true, "db-1": true, "my_db": true, "0": true, strings.Repeat("a", 32): true,
		"": false, "-a": false, "a-": false, "_a": false, "A": false, "a.b": false, "a/b": false, "..": false, "ä": false,
		strings.Repeat("a", 33): false,
	} {
		if service.ValidName(name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
}

// step is one line of a life: an event, and its result.
type step struct {
	event  service.Event
	state  service.State
	action service.Action
}

func TestLives(t *testing.T) {
	up := []step{
		{service.Start, service.Waiting, service.Seek}, {service.Met, service.Starting, service.Launch}, {service.Up, service.Running, service.Nothing},
	}
	stopped := []step{{service.Stop, service.Stopping, service.End}, {service.Gone, service.Stopped, service.Nothing}}
	crash := []step{{service.Crashed, service.Stopping, service.End}, {service.Gone, service.Backoff, service.Rest}}
	then := func(parts ...[]step) (all []step) {
		for _, part := range parts {
			all = append(all, part...)
		}
		return all
	}
	for name, c := range map[string]struct {
		machine service.Machine
		steps   []step
	}{
		"start and stop": {steps: then(up, stopped, up)},
		"a crash":        {steps: then(up, crash, []step{{service.Rested, service.Waiting, service.Seek}, {service.Met, service.Starting, service.Launch}})},
		"the end of an always service": {steps: then(up, []step{
			{service.Ended, service.Stopping, service.End}, {service.Gone, service.Backoff, service.Rest},
		})},
		"the end of an on-failure service": {machine: service.Machine{Restart: service.OnFailure}, steps: then(up, []step{
			{service.Ended, service.Stopping, service.End}, {service.Gone, service.Exited, service.Nothing}, {service.Start, service.Waiting, service.Seek},
		})},
		"a crash of an on-failure service": {machine: service.Machine{Restart: service.OnFailure}, steps: then(up, crash)},
		"a crash of a never service": {machine: service.Machine{Restart: service.Never}, steps: then(up, []step{
			{service.Crashed, service.Stopping, service.End}, {service.Gone, service.Exited, service.Nothing}, {service.Stop, service.Stopped, service.Nothing},
		})},
		"not ready in time": {steps: then(up[:2], []step{
			{service.TooLate, service.Stopping, service.End}, {service.Crashed, service.Stopping, service.Nothing}, {service.Gone, service.Backoff, service.Rest},
		})},
		"cannot be started":    {steps: then(up[:2], []step{{service.Failed, service.Stopping, service.End}, {service.Gone, service.Backoff, service.Rest}})},
		"stop while resting":   {steps: then(up, crash, []step{{service.Stop, service.Stopped, service.Nothing}, {service.Rested, service.Stopped, service.Nothing}})},
		"start while resting":  {steps: then(up, crash, up)},
		"stop while waiting":   {steps: []step{up[0], {service.Stop, service.Stopped, service.Nothing}, {service.Met, service.Stopped, service.Nothing}}},
		"start while stopping": {steps: then(up, stopped[:1], []step{{service.Start, service.Stopping, service.Nothing}, {service.Gone, service.Waiting, service.Seek}})},
		"start, then stop while stopping": {steps: then(up, stopped[:1], []step{
			{service.Start, service.Stopping, service.Nothing}, {service.Stop, service.Stopping, service.Nothing}, {service.Gone, service.Stopped, service.Nothing},
		})},
		"restart":                                {steps: then(up, []step{{service.Again, service.Stopping, service.End}, {service.Gone, service.Waiting, service.Seek}})},
		"restart by a signal":                    {machine: service.Machine{Reloads: true}, steps: then(up, []step{{service.Again, service.Running, service.Notify}})},
		"restart by a signal before it is ready": {machine: service.Machine{Reloads: true}, steps: then(up[:2], []step{{service.Again, service.Stopping, service.End}})},
		"restart of a stopped one":               {steps: []step{{service.Again, service.Waiting, service.Seek}}},
		"restart during the end of a crash": {steps: then(up, crash[:1], []step{
			{service.Again, service.Stopping, service.Nothing}, {service.Gone, service.Waiting, service.Seek},
		})},
		"stop during the end of a crash": {steps: then(up, crash[:1], []step{{service.Stop, service.Stopping, service.Nothing}, {service.Gone, service.Stopped, service.Nothing}})},
	} {
		t.Run(name, func(t *testing.T) {
			m := c.machine
			m.State = service.Stopped
			for i, want := range c.steps {
				got := want
				got.action = m.Step(want.event, time.Unix(int64(i), 0))
				got.state = m.State
				if diff := cmp.Diff(want, got, cmp.AllowUnexported(step{})); diff != "" {
					t.Fatalf("step %d (-want +got):\n%s", i, diff)
				}
			}
		})
	}
}

// With any events in any order, a machine never launches twice without an end
// between, and an unwanted one comes to rest.
func TestEveryOrderOfEvents(t *testing.T) {
	events := []service.Event{
		service.Start, service.Stop, service.Again, service.Met, service.Failed, service.Up,
		service.TooLate, service.Ended, service.Crashed, service.Gone, service.Rested,
	}
	var walk func(m service.Machine, alive bool, depth int)
	walk = func(m service.Machine, alive bool, depth int) {
		if depth == 0 {
			m.Step(service.Stop, time.Unix(0, 0))
			m.Step(service.Gone, time.Unix(0, 0))
			if m.State != service.Stopped || m.Wanted {
				t.Fatalf("stopped, and it is %+v", m)
			}
			return
		}
		for _, e := range events {
			next := m
			running := alive
			if e == service.Gone && m.State == service.Stopping {
				running = false
			}
			if next.Step(e, time.Unix(0, 0)) == service.Launch {
				if running {
					t.Fatalf("launched twice: %+v on %s", m, e)
				}
				running = true
			}
			walk(next, running, depth-1)
		}
	}
	for _, policy := range []service.Restart{"", service.OnFailure, service.Never} {
		walk(service.Machine{State: service.Stopped, Restart: policy}, false, 5)
	}
}

func TestBackoff(t *testing.T) {
	var got []time.Duration
	for _, n := range []int{0, 1, 2, 3, 4, 7, 8, 9, 1000} {
		got = append(got, service.Delay(n))
	}
	const ms = time.Millisecond
	want := []time.Duration{250 * ms, 250 * ms, 500 * ms, 1000 * ms, 2000 * ms, 16000 * ms, 30000 * ms, 30000 * ms, 30000 * ms}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("delays (-want +got):\n%s", diff)
	}
	// Failures count in a row: one that ran for a while starts over.
	m := service.Machine{State: service.Stopped}
	now := time.Unix(0, 0)
	life := func(ran time.Duration) {
		for _, e := range []service.Event{service.Met, service.Up} {
			m.Step(e, now)
		}
		now = now.Add(ran)
		for _, e := range []service.Event{service.Crashed, service.Gone, service.Rested} {
			m.Step(e, now)
		}
	}
	m.Step(service.Start, now)
	var failures []int
	for _, ran := range []time.Duration{0, time.Second, time.Second, time.Minute, time.Second} {
		life(ran)
		failures = append(failures, m.Failures)
	}
	if diff := cmp.Diff([]int{1, 2, 3, 1, 2}, failures); diff != "" {
		t.Errorf("failures (-want +got):\n%s", diff)
	}
}
