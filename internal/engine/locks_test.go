package engine_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git/gittest"
	"github.com/litterbox-sandbox/litterbox/internal/lock"
)

// Whatever lock another process holds, an interrupted command ends, and names the
// holder where it can.
func TestInterruptEndsTheWaitForALock(t *testing.T) {
	w := newWorld(t)
	made, err := w.Create(gittest.Context(t), engine.CreateRequest{Dir: w.dir, Name: "fix"})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(w.store.Root, "audit"), 0o700); err != nil {
		t.Fatal(err)
	}
	file := func(name string) func(*testing.T) func() {
		return func(t *testing.T) func() {
			held, err := os.OpenFile(filepath.Join(w.store.Root, name), os.O_CREATE|os.O_RDWR, 0o600)
			if err == nil {
				err = lock.File(t.Context(), held)
			}
			if err != nil {
				t.Fatal(err)
			}
			return func() { held.Close() }
		}
	}
	record := func(name string) func(*testing.T) func() {
		return func(t *testing.T) func() {
			unlock, err := w.store.Lock(t.Context(), made.ID, name)
			if err != nil {
				t.Fatal(err)
			}
			return unlock
		}
	}
	exec := func(ctx context.Context) error {
		_, err := w.Exec(ctx, engine.ExecRequest{Dir: w.dir, Name: "fix", Argv: []string{"true"}})
		return err
	}
	stop := func(ctx context.Context) error {
		_, err := w.Stop(ctx, engine.StopRequest{Dir: w.dir, Name: "fix"})
		return err
	}
	for _, c := range []struct {
		name string
		hold func(*testing.T) func()
		run  func(context.Context) error
	}{
		{"audit log", file("audit/lock"), exec},
		{"cycles", record("cycles"), exec},
		{"lease", record("lease"), stop},
	} {
		t.Run(c.name, func(t *testing.T) {
			release := c.hold(t)
			held := fmt.Sprintf("process %d ", os.Getpid())
			// On a loaded machine the interrupt may come before the wait.
			for patience := 300 * time.Millisecond; ; patience *= 4 {
				ctx, cancel := context.WithTimeout(gittest.Context(t), patience)
				ended := make(chan error, 1)
				go func() { ended <- c.run(ctx) }()
				select {
				case err = <-ended:
				case <-time.After(2 * time.Minute):
					release()
					t.Fatal("it still waits")
				}
				cancel()
				if err != nil && strings.Contains(err.Error(), held) || patience > 30*time.Second {
					break
				}
			}
			release()
			if fault.KindOf(err) != fault.Canceled || !strings.Contains(err.Error(), held) {
				t.Errorf("got %v, want who holds it: %q", err, held)
			}
			// The control: as soon as it is free, the same command succeeds.
			if err := c.run(gittest.Context(t)); err != nil {
				t.Errorf("when it is free: %v", err)
			}
		})
	}
}
