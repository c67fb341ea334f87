package engine

import (
	"context"
	"errors"
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

// unreachable is the error of a sandbox that is there and does not answer.
func (e *Engine) unreachable(ctx context.Context, p *place, cause error) error {
	var since time.Time
	if lease, err := e.lease(ctx, p); err == nil && lease != nil {
		since = silentSince(lease)
	}
	return keeper.ErrUnreachable(p.record.Name, since, cause)
}

// underCommand words the error of a command that could not be finished. Of a
// sandbox that is still there only the wire to it was cut.
func (e *Engine) underCommand(ctx context.Context, p *place, err error) error {
	worded := fault.Wrap("", err, "cannot run the command in sandbox %q", p.record.Name)
	state, _ := e.state(context.WithoutCancel(ctx), p.record)
	if fault.KindOf(err) != fault.Unavailable || state != sandbox.Running && state != sandbox.Unreachable {
		return worded
	}
	return worded.WithHint("the connection to it was cut and the sandbox goes on; see litterbox status %s", p.record.Name)
}

// silentSince is since when a place does not answer: its keeper has written it
// down, or has last been heard of then.
func silentSince(lease *sandbox.Lease) time.Time {
	if !lease.UnreachableSince.IsZero() {
		return lease.UnreachableSince
	}
	return lastBeat(lease)
}
