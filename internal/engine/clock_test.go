package engine_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/process"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// clock is ahead of the machine's by as much as a test says.
type clock struct {
	mu            sync.Mutex
	today, moment time.Duration
}

// pass lets time go by.
func (c *clock) pass(d time.Duration) { c.set(d, d) }

// set moves the time of day and the clock that cannot be set.
func (c *clock) set(today, moment time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.today, c.moment = c.today+today, c.moment+moment
}

func (c *clock) of() engine.Clock {
	return engine.Clock{
		Today: func() time.Time {
			c.mu.Lock()
			defer c.mu.Unlock()
			return time.Now().Add(c.today)
		},
		Moment: func() sandbox.Moment {
			c.mu.Lock()
			defer c.mu.Unlock()
			now := process.Now()
			now.Awake += c.moment
			return now
		},
	}
}

// A hold ends when its agent has been silent for long enough. A time of day that
// jumps ends none.
func TestHoldOfASilentAgent(t *testing.T) {
	w, ctx := begun(t)
	one, other := engine.Actor{Client: "one", Session: "1"}, engine.Actor{Client: "other", Session: "2"}
	hold, _, err := w.Hold(ctx, w.dir, "fix", one)
	if err != nil {
		t.Fatal(err)
	}
	refused := func(when string) {
		t.Helper()
		if _, _, err := w.Hold(ctx, w.dir, "fix", other); fault.KindOf(err) != fault.Conflict {
			t.Errorf("%s: %v", when, err)
		}
	}
	refused("at once")
	w.clock.pass(sandbox.HoldSilence / 2)
	if err := w.Renew(ctx, hold); err != nil {
		t.Fatal(err)
	}
	w.clock.pass(sandbox.HoldSilence / 2)
	refused("after a sign of life")
	if process.Now().Known() { // elsewhere the only clock can be set
		w.clock.set(30*24*time.Hour, 0)
		refused("after the time of day was set")
	}
	w.clock.pass(sandbox.HoldSilence)
	_, notes, err := w.Hold(ctx, w.dir, "fix", other)
	if err != nil || len(notes) != 1 || !strings.Contains(notes[0], "no sign of life") {
		t.Fatalf("after a silence: %q, %v", notes, err)
	}
	if err := w.Renew(ctx, hold); fault.KindOf(err) != fault.Conflict {
		t.Errorf("the silent one works on: %v", err)
	}
}

var errNoTrash = errors.New("this disk has no room for the files of a deleted sandbox")

// Retention in days acts when the days have passed, and not before.
func TestRetentionInDays(t *testing.T) {
	const day = 24 * time.Hour
	for kind, begin := range map[string]func(*world, context.Context) error{
		"sandbox": func(w *world, ctx context.Context) error {
			_, err := w.Stop(ctx, engine.StopRequest{Dir: w.dir, Name: "fix"})
			return err
		},
		"trash": func(w *world, ctx context.Context) error {
			done, err := w.Delete(ctx, engine.DeleteRequest{Dir: w.dir, Name: "fix", Force: true})
			if err == nil && done.Until == nil {
				err = errNoTrash
			}
			return err
		},
	} {
		t.Run(kind, func(t *testing.T) {
			w, ctx := begun(t)
			w.configure(t, "[retention]\nmax-age = \"3d\"\ntrash = \"3d\"\n")
			switch err := begin(w, ctx); {
			case errors.Is(err, errNoTrash):
				t.Skip(err)
			case err != nil:
				t.Fatal(err)
			}
			for _, want := range []bool{false, true, false} {
				w.clock.pass(2 * day)
				done, err := w.Prune(ctx, engine.PruneRequest{Dir: w.dir})
				if err != nil {
					t.Fatal(err)
				}
				goes := slices.ContainsFunc(done, func(one engine.Pruned) bool { return one.Kind == kind && one.Kept == "" })
				if goes != want {
					t.Errorf("it goes: %v, want %v: %+v", goes, want, done)
				}
			}
		})
	}
}
