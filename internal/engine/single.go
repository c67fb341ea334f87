package engine

import (
	"context"
	"encoding/json"
	"net"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/keeper"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// alone makes sure that the sandbox has no keeper, and that none comes up before
// unlock. It waits for a keeper that is ending, and ends one that lives but does
// not answer. lease is the recorded lease, nil for none.
func (e *Engine) alone(ctx context.Context, p *place, lease *sandbox.Lease) (unlock func(), err error) {
	patience := keeper.SinglePatience
	if lease != nil && lease.Expired(e.moment(), e.now()) {
		patience = startPatience // it has been silent for long enough
	}
	try := func(patience time.Duration) error {
		brief, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		unlock, err = p.store.Lock(brief, p.record.ID, keeper.Lock)
		return err
	}
	if try(patience) == nil || ctx.Err() != nil || fault.KindOf(err) != fault.Canceled {
		return unlock, err
	}
	ended, err := e.endKeeper(p, lease)
	if err != nil {
		return nil, err
	}
	if !ended {
		// A keeper that is still starting, for a command that died, has recorded
		// nothing yet. Without its place it ends.
		done, err := p.driver.Recover(ctx, driver.Lease{ID: p.record.ID, SandboxID: p.record.ID, StateDir: p.dir})
		if err != nil {
			return nil, err
		}
		p.note(done...)
	}
	if try(patience) != nil && ctx.Err() == nil {
		return nil, fault.New(fault.Timeout, "cannot work on sandbox %q: its keeper neither answers nor ends", p.record.Name).
			WithHint("litterbox doctor")
	}
	return unlock, err
}

// awaitKeeper waits while a keeper is there that does not answer yet, or no longer
// does: the command that started it may have died on the way. It returns a
// connection to one that has come up.
func (e *Engine) awaitKeeper(ctx context.Context, p *place) *net.UnixConn {
	once, cancel := context.WithCancel(ctx)
	cancel() // one attempt is always made
	for deadline := time.Now().Add(keeper.SinglePatience); ctx.Err() == nil && time.Now().Before(deadline); time.Sleep(lockPause) {
		unlock, err := p.store.Lock(once, p.record.ID, keeper.Lock)
		if err == nil {
			unlock()
			return nil
		}
		if conn, err := p.dial(ctx); err == nil {
			return conn
		}
	}
	return nil
}

// lockPause is the time between two attempts.
const lockPause = 5 * time.Millisecond

// endKeeper ends the keeper that the lease names, if it is still alive. The place
// goes on without it.
func (e *Engine) endKeeper(p *place, lease *sandbox.Lease) (ended bool, err error) {
	var holder sandbox.Process
	if lease == nil || json.Unmarshal([]byte(lease.Holder), &holder) != nil {
		return false, nil
	}
	if ended, err = e.Keepers.End(p.record.ID, holder); err != nil {
		return false, fault.Wrap(fault.Unavailable, err, "cannot end the keeper of sandbox %q, which does not answer", p.record.Name).
			WithHint("kill -9 %d", holder.PID)
	}
	if ended {
		p.note("the keeper of sandbox " + p.record.Name + " did not answer and was ended")
	}
	return ended, nil
}
