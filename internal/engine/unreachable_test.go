package engine_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/git/gittest"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// eventually waits for a condition that another goroutine brings about.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not come to pass that " + what)
		}
	}
}

// create makes a sandbox and returns the lease that its driver knows it by.
func (w *world) create(t *testing.T, name string) driver.Lease {
	t.Helper()
	made, err := w.Create(gittest.Context(t), engine.CreateRequest{Dir: w.dir, Name: name})
	if err != nil {
		t.Fatal(err)
	}
	return driver.Lease{SandboxID: made.ID}
}

func (w *world) exec(ctx context.Context, name string, argv ...string) error {
	_, err := w.Exec(ctx, engine.ExecRequest{Dir: w.dir, Name: name, Argv: argv})
	return err
}

func (w *world) one(t *testing.T) engine.Info {
	t.Helper()
	all, err := w.List(gittest.Context(t), w.dir, false)
	if err != nil || len(all) != 1 {
		t.Fatalf("list: %+v, %v", all, err)
	}
	return all[0]
}

// A wire that is cut under a command ends the command and not the sandbox.
func TestCutWire(t *testing.T) {
	w := newWorld(t)
	lease := w.create(t, "fix")
	stdin, feed := io.Pipe()
	stdout, echo := io.Pipe()
	defer feed.Close()
	said := make(chan error, 1)
	go func() {
		_, err := w.Exec(gittest.Context(t), engine.ExecRequest{Dir: w.dir, Name: "fix", Argv: []string{"cat"},
			Streams: engine.Streams{Stdin: stdin, Stdout: echo}})
		said <- err
	}()
	if _, err := feed.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(stdout, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if err := w.machine.Cut(lease); err != nil {
		t.Fatal(err)
	}
	if err := <-said; err == nil {
		t.Error("a command whose wire was cut succeeds")
	}
	for range 3 {
		if err := w.exec(gittest.Context(t), "fix", "true"); err != nil {
			t.Fatalf("after a cut: %v", err)
		}
	}
	if started := w.keepers.Started(); len(started) != 1 || started[0].Order.Lease != nil {
		t.Errorf("the sandbox was started %d times", len(started))
	}
	for _, event := range w.events(t) {
		if event == sandbox.EventLost {
			t.Error("it was recorded as lost")
		}
	}
}

// events lists the types of the recorded events.
func (w *world) events(t *testing.T) []sandbox.EventType {
	t.Helper()
	var types []sandbox.EventType
	err := w.Events(gittest.Context(t), engine.EventsRequest{Dir: w.dir}, func(event sandbox.Event) error {
		types = append(types, event.Type)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return types
}

// A place that does not answer is unreachable, with its keeper and without one:
// commands say since when, a merge refuses, and it comes back as it was before.
func TestUnreachable(t *testing.T) {
	for name, without := range map[string]bool{"with its keeper": false, "without a keeper": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			lease := w.create(t, "fix")
			if without {
				w.keepers.Close()
			}
			if err := w.machine.Deafen(lease, true); err != nil {
				t.Fatal(err)
			}
			eventually(t, "it is listed as unreachable", func() bool { return w.one(t).State == sandbox.Unreachable })
			if info := w.one(t); info.UnreachableSince.IsZero() || !strings.Contains(info.Problem, "has not answered since") {
				t.Errorf("list does not say since when: %+v", info)
			}
			err := w.exec(gittest.Context(t), "fix", "true")
			if !errors.Is(err, driver.ErrUnreachable) && !strings.Contains(errorText(err), "has not answered since") {
				t.Errorf("exec: %v", err)
			}
			if _, err := w.Merge(gittest.Context(t), engine.MergeRequest{Dir: w.dir, Name: "fix", Delete: true}); err == nil {
				t.Error("it is merged and deleted")
			}
			if err := w.machine.Deafen(lease, false); err != nil {
				t.Fatal(err)
			}
			eventually(t, "it answers again", func() bool { return w.exec(gittest.Context(t), "fix", "true") == nil })
			if info := w.one(t); info.State != sandbox.Running || !info.UnreachableSince.IsZero() {
				t.Errorf("afterwards it is %+v", info)
			}
			for _, one := range w.keepers.Started()[1:] {
				if one.Order.Lease == nil {
					t.Error("it was started again")
				}
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// A stop ends an unreachable place, and a place that is known to be lost is
// started again.
func TestStopOfUnreachable(t *testing.T) {
	w := newWorld(t)
	lease := w.create(t, "fix")
	if err := w.machine.Deafen(lease, true); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Stop(gittest.Context(t), engine.StopRequest{Dir: w.dir, Name: "fix"}); err != nil {
		t.Fatal(err)
	}
	if left := w.machine.Places(); len(left) > 0 {
		t.Errorf("places are left: %v", left)
	}
	if err := w.exec(gittest.Context(t), "fix", "true"); err != nil {
		t.Errorf("after that: %v", err)
	}
	if err := w.machine.Kill(lease); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is started again", func() bool { return w.exec(gittest.Context(t), "fix", "true") == nil })
}
