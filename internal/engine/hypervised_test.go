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
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// hypervised is a driver whose machines stand still with their sandbox, and whose
// hypervisor says so.
type hypervised struct{ carrying }

func (h hypervised) Machine(_ context.Context, _ driver.Lease, measured bool) (driver.Machine, error) {
	m := driver.Machine{Name: "machine-1", State: "running", Reason: "booted", CPU: -1, Balloon: -1}
	if h.mute.Load() {
		m.State, m.Reason = "paused", "user"
	}
	if measured {
		m.Balloon = 1 << 30
	}
	return m, nil
}

func (h hypervised) Pause(ctx context.Context, lease driver.Lease, reason string) error {
	h.mute.Store(true)
	return h.carrying.Pause(ctx, lease, reason)
}

func (h hypervised) Resume(ctx context.Context, lease driver.Lease) error {
	h.mute.Store(false)
	return h.carrying.Resume(ctx, lease)
}

// newHypervised is a world with a sandbox in such a machine.
func newHypervised(t *testing.T) *farWorld {
	t.Helper()
	return newFarWorldOf(t, func(far carrying) driver.Driver { return hypervised{far} })
}

// Events of pauses have the reason of the hypervisor, and measures are its, too.
func TestHypervisorsWord(t *testing.T) {
	w := newHypervised(t)
	ctx := gittest.Context(t)
	request := engine.PauseRequest{Dir: w.dir, Name: "fix"}
	if _, err := w.Pause(ctx, request); err != nil {
		t.Fatal(err)
	}
	samples, err := w.Samples(ctx, w.dir, false, false)
	if err != nil || len(samples) != 1 || samples[0].Machine == nil {
		t.Fatalf("measured is %+v, %v", samples, err)
	}
	if m := *samples[0].Machine; m.Text() != "paused (user)" || m.Balloon != 1<<30 {
		t.Errorf("the machine is %+v", m)
	}
	if status, err := w.Status(ctx, w.dir, "fix"); err != nil || status.Machine == nil || status.Machine.Name != "machine-1" {
		t.Errorf("status has %+v, %v", status.Machine, err)
	}
	if _, err := w.Resume(ctx, request); err != nil {
		t.Fatal(err)
	}
	var said []string
	err = w.Events(ctx, engine.EventsRequest{Dir: w.dir}, func(event sandbox.Event) error {
		if event.Type == sandbox.EventPaused || event.Type == sandbox.EventResumed {
			said = append(said, string(event.Type)+" "+event.Data["machine"])
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"sandbox.paused paused (user)", "sandbox.resumed running (booted)"}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Errorf("events (- want, + got):\n%s", diff)
	}
}

// A snapshot of a paused sandbox has its memory, and whatever is uncommitted: its
// machine lists nothing, and is not asked.
func TestSnapshotOfPausedMachine(t *testing.T) {
	w := newHypervised(t)
	ctx := gittest.Context(t)
	w.behind(t, "late.txt", "uncommitted\n")
	if _, err := w.Pause(ctx, engine.PauseRequest{Dir: w.dir, Name: "fix"}); err != nil {
		t.Fatal(err)
	}
	if out, err := w.diff(t); !strings.HasPrefix(fault.HintOf(err), "litterbox resume fix, ") {
		t.Errorf("its differences are %q, %v", out, err)
	}
	taken, err := w.TakeSnapshot(ctx, w.dir, "fix", "still")
	if err != nil {
		t.Fatal(err)
	}
	if info := w.one(t); info.State != sandbox.Paused || taken.Commit != info.Head {
		t.Errorf("it is %s at %s, and the snapshot at %s", info.State, info.Head, taken.Commit)
	}
}
