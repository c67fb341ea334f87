package keeper

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/forward"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// PausedWelcome is what a keeper sends instead of [Welcome] while its sandbox
// is paused on request: it answers only for itself.
const PausedWelcome = '='

// ErrPaused is the answer to a client that wants something of a paused sandbox.
func ErrPaused(name string) error {
	return fault.New(fault.Conflict, "sandbox %q is paused", name).WithHint("litterbox resume %s", name)
}

// idle pauses a sandbox that no client has asked for in a while.
type idle struct {
	mu      sync.Mutex // held while the sandbox is being paused or resumed
	paused  sandbox.PauseReason
	clients int
	asked   int           // how many clients there ever were
	after   time.Duration // 0: never
	timer   *time.Timer
	beat    chan struct{} // signaled at each heartbeat
}

// set changes how long the sandbox must go unasked.
func (i *idle) set(after time.Duration) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.after = after
	if i.clients == 0 {
		i.arm()
	}
}

// arm begins to wait. The caller holds mu.
func (i *idle) arm() {
	switch {
	case i.timer == nil:
	case i.after > 0 && i.paused == "":
		i.timer.Reset(i.after)
	default:
		i.timer.Stop()
	}
}

// why is the reason for the pause, empty when there is none. It does not wait for the
// end of a short one: a large copy may take longer than clients wait for a keeper.
func (k *keeper) why() sandbox.PauseReason {
	k.mu.Lock()
	reason := k.lease.PausedFor
	k.mu.Unlock()
	if reason.Passes() {
		return reason
	}
	k.idle.mu.Lock()
	defer k.idle.mu.Unlock()
	return k.idle.paused
}

// begin counts a client that wants something of the guest. It ends a pause that
// no one asked for, and refuses during one that was asked for.
func (k *keeper) begin(ctx context.Context) error {
	k.idle.mu.Lock()
	defer k.idle.mu.Unlock()
	switch k.idle.paused {
	case "":
	case sandbox.PausedByUser:
		return ErrPaused(k.order.Spec.Name)
	default:
		if err := k.resumeLocked(ctx); err != nil {
			return err
		}
	}
	if k.released() {
		return fault.New(fault.Unavailable, "sandbox %q is being stopped, because it has been idle", k.order.Spec.Name).
			WithHint("litterbox start %s", k.order.Spec.Name)
	}
	k.idle.clients++
	k.rest.Begin()
	k.idle.asked++
	if k.idle.timer != nil {
		k.idle.timer.Stop()
	}
	k.supervisor.wakeUp()
	return nil
}

func (k *keeper) end() {
	k.idle.mu.Lock()
	defer k.idle.mu.Unlock()
	k.rest.End()
	if k.idle.clients--; k.idle.clients == 0 {
		k.idle.arm()
	}
}

// waking makes connections to forwarded ports end a pause that no one asked
// for. During other pauses they wait, as they do for a busy sandbox.
func (k *keeper) waking(dial forward.Dial) forward.Dial {
	return func(port uint16, gone <-chan struct{}) (forward.Conn, error) {
		if k.begin(context.Background()) == nil {
			defer k.end()
		}
		return dial(port, gone)
	}
}

// watchIdle starts to count the time without clients.
func (k *keeper) watchIdle(ctx context.Context) {
	k.idle.mu.Lock()
	defer k.idle.mu.Unlock()
	k.idle.after = k.rules.IdlePause
	k.idle.timer = time.AfterFunc(time.Hour, func() {
		k.idle.mu.Lock()
		defer k.idle.mu.Unlock()
		if k.ports.Active() > 0 {
			k.idle.arm()
			return
		}
		if k.idle.clients > 0 || k.idle.after == 0 || k.idle.paused != "" || ctx.Err() != nil || k.released() {
			return
		}
		if err := k.pauseLocked(ctx, sandbox.PausedWhileIdle); err != nil {
			fmt.Fprintln(os.Stderr, "keeper: cannot pause an idle sandbox:", err)
			k.idle.arm()
		}
	})
	k.idle.arm()
}

// pause answers OpPause.
func (k *keeper) pause(ctx context.Context, reason sandbox.PauseReason) error {
	k.idle.mu.Lock()
	defer k.idle.mu.Unlock()
	return k.pauseLocked(ctx, reason)
}

// pauseLocked records the pause before it makes it, so that anyone who finds a
// paused place finds out why.
func (k *keeper) pauseLocked(ctx context.Context, reason sandbox.PauseReason) error {
	if reason == "" {
		reason = sandbox.PausedByUser
	}
	before := k.idle.paused
	if before == reason || before == sandbox.PausedByUser {
		return nil
	}
	err := k.setPaused(reason)
	if err == nil && before == "" {
		err = k.driver.Pause(ctx, k.driverLease(), string(reason))
	}
	if err != nil {
		return errors.Join(err, k.setPaused(before))
	}
	k.record(sandbox.EventPaused, driver.Because(ctx, k.driver, k.driverLease(), map[string]string{"reason": string(reason)}))
	return nil
}

// resume answers OpResume. A place that already runs is not an error.
func (k *keeper) resume(ctx context.Context) error {
	k.idle.mu.Lock()
	defer k.idle.mu.Unlock()
	return k.resumeLocked(ctx)
}

func (k *keeper) resumeLocked(ctx context.Context) error {
	if k.idle.paused == "" {
		return nil
	}
	err := k.driver.Resume(ctx, k.driverLease())
	if err != nil && !errors.Is(err, driver.ErrMachineLost) {
		return err
	}
	// A lost place is no longer paused.
	err = errors.Join(err, k.setPaused(""))
	k.supervisor.wakeUp()
	if k.idle.clients == 0 {
		k.idle.arm()
	}
	k.record(sandbox.EventResumed, driver.Because(ctx, k.driver, k.driverLease(), nil))
	return err
}

// setPaused records that the sandbox is paused, or with no reason that it is
// not. Between the two a heartbeat may write the record at any time, so the
// reason goes into the lease before anything else.
func (k *keeper) setPaused(reason sandbox.PauseReason) error {
	k.idle.paused = reason
	k.mu.Lock()
	k.lease.PausedFor = reason
	k.mu.Unlock()
	return k.renew(sandbox.LeaseActive)
}

// deploy answers OpDeploy: the policy on disk comes into force while nothing
// inside moves.
func (k *keeper) deploy(ctx context.Context) error {
	k.idle.mu.Lock()
	defer k.idle.mu.Unlock()
	before := k.idle.paused
	if before == "" {
		if err := k.pauseLocked(ctx, sandbox.PausedForPolicy); err != nil {
			return err
		}
	}
	err := k.net.reload()
	if before == "" {
		err = errors.Join(err, k.resumeLocked(ctx))
	}
	return err
}
