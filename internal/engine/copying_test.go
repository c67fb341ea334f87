package engine_test

import (
	"context"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/git/gittest"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// copying is a driver that takes its time for a snapshot.
type copying struct {
	carrying
	begun, proceed chan struct{}
}

func (c copying) Snapshot(ctx context.Context, lease driver.Lease, label string) (driver.Snapshot, error) {
	close(c.begun)
	<-c.proceed
	return c.carrying.Snapshot(ctx, lease, label)
}

// A sandbox that stands still for a copy counts as running, and goes on by itself,
// also where the command that asked for the copy was killed.
func TestSandboxThatIsCopied(t *testing.T) {
	slow := copying{begun: make(chan struct{}), proceed: make(chan struct{})}
	w := newFarWorldOf(t, func(far carrying) driver.Driver {
		slow.carrying = far
		return slow
	})
	asking, kill := context.WithCancel(gittest.Context(t))
	over := make(chan error, 1)
	go func() {
		_, err := w.TakeSnapshot(asking, w.dir, "fix", "killed")
		over <- err
	}()
	<-slow.begun
	lease, err := w.store.Lease(w.id)
	if err != nil || lease.PausedFor != sandbox.PausedForCopy {
		t.Fatalf("while it is copied its lease is %+v, %v", lease, err)
	}
	runs := func(when string) {
		t.Helper()
		all, err := w.List(gittest.Context(t), w.dir, false)
		if err != nil || len(all) != 1 || all[0].State != sandbox.Running {
			t.Errorf("%s it is listed as %+v, %v", when, all, err)
		}
		status, err := w.Status(gittest.Context(t), w.dir, "fix")
		if err != nil || status.State != sandbox.Running || status.Problem != "" {
			t.Errorf("%s its status is %+v, %v", when, status, err)
		}
	}
	runs("while it is copied")
	kill()
	if err := <-over; err == nil {
		t.Error("a killed command has taken a snapshot")
	}
	runs("after the kill")
	written := make(chan error, 1)
	go func() {
		_, err := w.write(t, "a.txt", "one\n")
		written <- err
	}()
	close(slow.proceed)
	if err := <-written; err != nil {
		t.Errorf("the next command: %v", err)
	}
	runs("in the end")
	after, err := w.store.Lease(w.id)
	if err != nil || after.ID != lease.ID || after.PausedFor != "" {
		t.Errorf("in the end its lease is %+v, %v", after, err)
	}
}
