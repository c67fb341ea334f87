package engine_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/git/gittest"
)

// waking is a driver whose machine must be started before it answers.
type waking struct {
	carrying
	asleep *atomic.Bool
	asked  chan struct{} // one for each caller that waits
	woken  chan struct{} // closed when it has started
}

func (w waking) Attach(ctx context.Context, lease driver.Lease) error {
	if w.asleep.Load() {
		w.asked <- struct{}{}
		select {
		case <-w.woken:
		case <-ctx.Done():
			return driver.ErrUnreachable
		}
	}
	return w.carrying.Attach(ctx, lease)
}

// A command right after a machine has ended waits until it is there again, longer
// than its keeper has patience.
func TestCommandWaitsForItsMachine(t *testing.T) {
	machine := waking{asleep: new(atomic.Bool), asked: make(chan struct{}, 10), woken: make(chan struct{})}
	w := newFarWorldOf(t, func(far carrying) driver.Driver {
		machine.carrying = far
		return machine
	})
	if it, err := w.write(t, "a.txt", "one\n"); err != nil || it.Changed != 1 {
		t.Fatalf("%+v, %v", it, err)
	}
	machine.asleep.Store(true)
	if err := w.machine.Kill(driver.Lease{SandboxID: w.id}); err != nil {
		t.Fatal(err)
	}
	<-machine.asked // by the keeper
	ran := make(chan error, 1)
	go func() { ran <- w.exec(gittest.Context(t), "fix", "true") }()
	select {
	case err := <-ran:
		t.Fatalf("a command did not wait for its machine: %v", err)
	case <-machine.asked: // by the command, too
	}
	machine.asleep.Store(false)
	close(machine.woken)
	if err := <-ran; err != nil {
		t.Errorf("when the machine is there again: %v", err)
	}
}
