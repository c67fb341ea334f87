package engine

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/keeper"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// attachPatience is how long a command without a keeper waits for a place that
// does not answer.
const attachPatience = 3 * time.Second

// attach finds the running place of a lease, and waits a little for one that
// does not answer.
func (p *place) attach(ctx context.Context, lease driver.Lease) error {
	deadline := time.Now().Add(attachPatience)
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, attachPatience/6) {
		err := p.driver.Attach(ctx, lease)
		if err == nil || errors.Is(err, driver.ErrMachineLost) || ctx.Err() != nil || time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// How long a command waits for a machine that is starting, and then for a keeper to
// learn the state of the place there.
const (
	machinePatience = time.Minute
	settlePatience  = 30 * time.Second
)

// startWaiting is start for a place whose machine may be on its way back. A killed
// container is started by the first process that asks, usually its keeper, and that
// takes longer than a keeper lets its clients wait. So the driver is asked, too:
// once it knows the state of the place, so will the keeper.
func (e *Engine) startWaiting(ctx context.Context, p *place, degraded bool) (*net.UnixConn, error) {
	stream, err := e.start(ctx, p, degraded)
	if err == nil || !p.unreachable || !e.machineAnswers(ctx, p) {
		return stream, err
	}
	for deadline := time.Now().Add(settlePatience); err != nil && p.unreachable && ctx.Err() == nil && time.Now().Before(deadline); {
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
		stream, err = e.start(ctx, p, degraded)
	}
	return stream, err
}

// machineAnswers reports whether the machine of a place answers, once it has been
// started. Where the place is in this machine there is nothing to wait for.
func (e *Engine) machineAnswers(ctx context.Context, p *place) bool {
	if p.driver.Traits().Files != sandbox.FilesCarried {
		return false
	}
	lease, err := e.lease(ctx, p)
	if err != nil || lease == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, machinePatience)
	defer cancel()
	err = p.driver.Attach(ctx, p.driverLease(lease))
	return err == nil || errors.Is(err, driver.ErrMachineLost)
}

// unreachable is the error of a sandbox that is there and does not answer. Without a
// cause, the hypervisor of its machine may know one.
func (e *Engine) unreachable(ctx context.Context, p *place, cause error) error {
	var since time.Time
	if lease, err := e.lease(ctx, p); err == nil && lease != nil {
		since = silentSince(lease)
		if _, has := p.driver.(driver.Hypervised); has && cause == nil {
			ctx, cancel := context.WithTimeout(ctx, attachPatience)
			defer cancel()
			if err := p.driver.Attach(ctx, p.driverLease(lease)); errors.Is(err, driver.ErrUnreachable) {
				cause = err
			}
		}
	}
	return keeper.ErrUnreachable(p.record.Name, since, cause)
}

// underCommand words the error of a command that could not be finished. If the
// sandbox is still there, only the wire to it was cut.
func (e *Engine) underCommand(ctx context.Context, p *place, err error) error {
	worded := fault.Wrap("", err, "cannot run the command in %s %q", p.kind(), p.record.Name)
	state, _ := e.state(context.WithoutCancel(ctx), p.record)
	if fault.KindOf(err) != fault.Unavailable || state != sandbox.Running && state != sandbox.Unreachable {
		return worded
	}
	if p.record.Live != nil {
		return worded.WithHint("the connection to it was cut and it goes on; see litterbox env list")
	}
	return worded.WithHint("the connection to it was cut and the sandbox goes on; see litterbox status %s", p.record.Name)
}

// silentSince is the time since which a place does not answer: as its keeper
// recorded it, or when the keeper was last heard of.
func silentSince(lease *sandbox.Lease) time.Time {
	if !lease.UnreachableSince.IsZero() {
		return lease.UnreachableSince
	}
	return lastBeat(lease)
}
