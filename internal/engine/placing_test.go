package engine_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git/gittest"
	"github.com/litterbox-sandbox/litterbox/internal/machine"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// machines are machines with a known state.
type machines map[string]machine.Status

func (m machines) All() ([]machine.Machine, error) { return nil, nil }

func (m machines) Add(_ context.Context, wanted machine.Machine) (machine.Machine, error) {
	return wanted, nil
}

func (m machines) Remove(context.Context, string, bool) error { return nil }

func (m machines) Status(_ context.Context, name string) (machine.Status, error) {
	status, has := m[name]
	switch {
	case !has:
		return status, fault.New(fault.NotFound, "there is no machine %q", name)
	case status.Processors == 0:
		return status, fault.Wrap("", driver.ErrUnreachable, "cannot reach the machine %q", name)
	}
	return status, nil
}

// with is a machine with that many processors and gibibytes, and that load.
func with(processors int, gib float64, load float64) machine.Status {
	return machine.Status{Isolation: sandbox.IsolationFull, Processors: processors, Memory: int64(gib * (1 << 30)), Load: load}
}

// taken are the machines that count sandboxes get.
func taken(p *engine.Placing, count int) string {
	var names []string
	for range count {
		names = append(names, driver.MachineOf(p.Take()))
	}
	return strings.Join(names, " ")
}

// A sandbox goes where the most is left for one more, by processors and by
// memory.
func TestPlacing(t *testing.T) {
	for name, c := range map[string]struct {
		machines machines
		want     string
	}{
		"alike":               {machines{"a": with(4, 64, 0), "b": with(4, 64, 0)}, "a b a b"},
		"one larger":          {machines{"a": with(2, 64, 0), "b": with(6, 64, 0)}, "b b a b"},
		"one busy":            {machines{"a": with(8, 64, 7), "b": with(3, 64, 0)}, "b b a b"},
		"one without memory":  {machines{"a": with(64, 1, 0), "b": with(2, 16, 0)}, "b b b a"},
		"all busy":            {machines{"a": with(4, 64, 30), "b": with(8, 64, 90)}, "b a b b"},
		"memory not measured": {machines{"a": {Isolation: sandbox.IsolationFull, Processors: 4, Memory: -1, Load: -1}, "b": with(2, 64, 0)}, "a a b a"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.Machines = c.machines
			p, err := w.Placing(gittest.Context(t), []string{"a", "b", "a"})
			if err != nil {
				t.Fatal(err)
			}
			if got := taken(p, 4); got != c.want {
				t.Errorf("placed on %s, want %s", got, c.want)
			}
		})
	}
}

// A sandbox that has ended leaves room.
func TestPlacingGivesBack(t *testing.T) {
	w := newWorld(t)
	w.Machines = machines{"a": with(4, 64, 0), "b": with(4, 64, 0)}
	p, err := w.Placing(gittest.Context(t), []string{"a", "b"})
	if err != nil {
		t.Fatal(err)
	}
	if got := taken(p, 2); got != "a b" {
		t.Fatalf("placed on %s", got)
	}
	p.Give(driver.OnMachine("b"))
	if got := taken(p, 1); got != "b" {
		t.Errorf("after the end of the one on b, the next is on %s", got)
	}
}

// A machine that does not answer or isolates less is passed over, with a note. An
// unknown name, or no machine left, is an error.
func TestPlacingWithoutSome(t *testing.T) {
	w, ctx := newWorld(t), gittest.Context(t)
	weak := with(64, 64, 0)
	weak.Isolation = ""
	w.Machines = machines{"good": with(1, 1, 0), "away": {}, "weak": weak}
	p, err := w.Placing(ctx, []string{"away", "good", "weak"})
	if err != nil {
		t.Fatal(err)
	}
	if got := taken(p, 2); got != "good good" {
		t.Errorf("placed on %s", got)
	}
	want := []string{
		`the machine away takes no sandbox now: cannot reach the machine "away": the sandbox does not answer`,
		"the machine weak takes no sandbox: full isolation is not available there; see litterbox machine test weak",
	}
	if diff := cmp.Diff(want, p.Notes); diff != "" {
		t.Errorf("notes (- want, + got):\n%s", diff)
	}
	if _, err := w.Placing(ctx, []string{"good", "none"}); fault.KindOf(err) != fault.NotFound {
		t.Errorf("with an unknown one: %v", err)
	}
	if _, err := w.Placing(ctx, []string{"away", "weak"}); fault.KindOf(err) != fault.Unavailable || fault.HintOf(err) == "" {
		t.Errorf("with none that takes sandboxes: %v", err)
	}
	if p, err := w.Placing(ctx, nil); p != nil || err != nil || p.Take() != "" {
		t.Errorf("without machines: %v, %v", p, err)
	}
}
