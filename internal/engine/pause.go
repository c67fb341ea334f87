package engine

import (
	"context"
	"errors"
	"slices"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/keeper"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// PauseRequest names sandboxes to pause or to resume: one, or some or all of the
// repository, or all there are. Of many, those that do not run are left alone.
type PauseRequest struct {
	Dir      string
	Name     string
	Names    []string // some of the repository, as List gives them
	AllEnvs  bool
	AllRepos bool
}

// PauseResult is the state of a sandbox afterwards.
type PauseResult struct {
	Name       string        `json:"name"`
	Repository string        `json:"repository"`
	State      sandbox.State `json:"state"`
	Changed    bool          `json:"changed"`
	Problem    string        `json:"problem,omitempty"`
}

// Pause freezes everything inside. Connections and terminals stay open, and
// the pause outlives keeper and client; Resume ends it.
func (e *Engine) Pause(ctx context.Context, request PauseRequest) ([]PauseResult, error) {
	return e.each(ctx, request, "pause", sandbox.Running, e.pauseOne)
}

// Resume lets everything inside go on, except what was already stopped.
func (e *Engine) Resume(ctx context.Context, request PauseRequest) ([]PauseResult, error) {
	return e.each(ctx, request, "resume", sandbox.Paused, e.resumeOne)
}

// each carries do out on every sandbox that the request names, each under an
// entry of its own in the audit log.
func (e *Engine) each(ctx context.Context, request PauseRequest, action string, in sandbox.State, one func(context.Context, *place) (bool, error)) ([]PauseResult, error) {
	do := func(ctx context.Context, p *place) (changed bool, err error) {
		ctx, call, err := e.recordIn(ctx, p, action, nil)
		if err != nil {
			return false, err
		}
		defer func() { err = call.end("", nil, err) }()
		return one(ctx, p)
	}
	if request.Name != "" {
		p, err := e.find(ctx, request.Dir, request.Name)
		if err != nil {
			return nil, err
		}
		defer e.tell(p)
		changed, err := do(ctx, p)
		if err != nil {
			return nil, err
		}
		state, _ := e.state(ctx, p.record)
		return []PauseResult{{Name: p.record.Name, Repository: p.record.Repository, State: state, Changed: changed}}, nil
	}
	infos, err := e.List(ctx, request.Dir, request.AllRepos)
	if err != nil {
		return nil, err
	}
	results := []PauseResult{}
	var all error
	for _, info := range infos {
		if len(request.Names) > 0 && !slices.Contains(request.Names, info.Name) {
			continue
		}
		result := PauseResult{Name: info.Name, Repository: info.Repository, State: info.State}
		if info.State == in {
			err := e.onRecord(ctx, info.ID, func(p *place) (err error) {
				result.Changed, err = do(ctx, p)
				result.State, _ = e.state(ctx, p.record)
				return err
			})
			if err != nil {
				result.Problem = err.Error()
				all = errors.Join(all, err)
			}
		}
		results = append(results, result)
	}
	return results, all
}

// onRecord works on the sandbox with that id.
func (e *Engine) onRecord(ctx context.Context, id string, do func(*place) error) error {
	record, err := e.sandbox(ctx, id)
	if err != nil {
		return err
	}
	p, err := e.open(ctx, record)
	if err != nil {
		return err
	}
	defer e.tell(p)
	if err := e.finishCopies(ctx, p); err != nil {
		return err
	}
	return do(p)
}

func (e *Engine) pauseOne(ctx context.Context, p *place) (changed bool, err error) {
	unlock, err := p.store.Lock(ctx, p.record.ID, "lease")
	if err != nil {
		return false, err
	}
	defer unlock()
	state, _ := e.state(ctx, p.record)
	if state != sandbox.Running && state != sandbox.Paused {
		return false, fault.New(fault.Conflict, "cannot pause sandbox %q: it is %s", p.record.Name, state).
			WithHint("litterbox start %s", p.record.Name)
	}
	lease, err := e.lease(ctx, p)
	if err != nil {
		return false, err
	}
	if lease == nil {
		return false, fault.New(fault.Conflict, "cannot pause sandbox %q: it has just ended", p.record.Name).
			WithHint("litterbox start %s", p.record.Name)
	}
	if lease.PausedFor == sandbox.PausedByUser {
		return false, nil
	}
	stream, err := p.dial(ctx)
	if err == nil {
		defer stream.Close()
		err = wire.Ask(ctx, stream, wire.Request{Op: keeper.OpPause, Reason: string(sandbox.PausedByUser)})
	} else {
		err = e.pauseAlone(ctx, p, lease)
	}
	switch {
	case err == nil:
		return true, nil
	case fault.KindOf(err) == fault.Timeout:
		err = fault.Wrap("", driver.ErrPauseTimeout, "cannot pause sandbox %q: %v", p.record.Name, err)
	default:
		err = e.ifGone(ctx, p, "pause", err)
	}
	return false, err
}

// ifGone is the error of a sandbox that died while it was to be paused or
// resumed: the same as if it had died before. Others stay as they are.
func (e *Engine) ifGone(ctx context.Context, p *place, verb string, err error) error {
	if ctx.Err() != nil || fault.KindOf(err) == fault.Conflict {
		return err
	}
	if state, _ := e.state(ctx, p.record); state == sandbox.Running || state == sandbox.Paused {
		return err
	}
	return fault.New(fault.Conflict, "cannot %s sandbox %q: it has just ended", verb, p.record.Name).
		WithHint("litterbox start %s", p.record.Name)
}

// withoutKeeper makes sure that there is no keeper, and reads what the last one
// recorded about a place.
func (e *Engine) withoutKeeper(ctx context.Context, p *place, lease *sandbox.Lease) (*sandbox.Lease, func(), error) {
	unlock, err := e.alone(ctx, p, lease)
	if err != nil {
		return nil, nil, err
	}
	lease, err = p.store.Lease(p.record.ID)
	if err == nil && (lease == nil || lease.State == sandbox.LeaseReleased || lease.State == sandbox.LeaseLost) {
		err = driver.ErrMachineLost
	}
	if err != nil {
		unlock()
		return nil, nil, err
	}
	return lease, unlock, nil
}

// pauseAlone pauses without a keeper. As with a keeper, the record comes first.
func (e *Engine) pauseAlone(ctx context.Context, p *place, lease *sandbox.Lease) error {
	lease, unlock, err := e.withoutKeeper(ctx, p, lease)
	if err != nil {
		return err
	}
	defer unlock()
	before := *lease
	lease.State, lease.PausedFor = sandbox.LeasePaused, sandbox.PausedByUser
	if err := p.store.SaveLease(lease); err != nil {
		return err
	}
	if err := p.driver.Pause(ctx, p.driverLease(lease), string(lease.PausedFor)); err != nil {
		return errors.Join(err, p.store.SaveLease(&before))
	}
	e.emit(ctx, p, because(ctx, p, lease, event(sandbox.EventPaused, 0, "reason", string(lease.PausedFor))))
	return nil
}

func (e *Engine) resumeOne(ctx context.Context, p *place) (changed bool, err error) {
	alone, changed, err := e.resumeOnce(ctx, p)
	if err != nil || !alone {
		return changed, err
	}
	// Its keeper had died: open connections may need one.
	stream, err := e.running(ctx, p, false)
	if err != nil {
		return true, err
	}
	return true, stream.Close()
}

// resumeOnce resumes, and reports whether there was no keeper to do it.
func (e *Engine) resumeOnce(ctx context.Context, p *place) (alone, changed bool, err error) {
	unlock, err := p.store.Lock(ctx, p.record.ID, "lease")
	if err != nil {
		return false, false, err
	}
	defer unlock()
	lease, err := e.lease(ctx, p)
	if err != nil {
		return false, false, err
	}
	if state, _ := e.state(ctx, p.record); state == sandbox.Running {
		return false, false, nil
	} else if state != sandbox.Paused {
		return false, false, fault.New(fault.Conflict, "cannot resume sandbox %q: it is %s", p.record.Name, state).
			WithHint("litterbox start %s", p.record.Name)
	}
	if stream, err := p.dial(ctx); err == nil {
		defer stream.Close()
		if err := wire.Ask(ctx, stream, wire.Request{Op: keeper.OpResume}); err != nil {
			return false, false, e.ifGone(ctx, p, "resume", err)
		}
		return false, true, nil
	}
	if err := e.resumeAlone(ctx, p, lease); err != nil {
		return false, false, e.ifGone(ctx, p, "resume", err)
	}
	return true, true, nil
}

// resumeAlone resumes without a keeper.
func (e *Engine) resumeAlone(ctx context.Context, p *place, lease *sandbox.Lease) error {
	lease, unlock, err := e.withoutKeeper(ctx, p, lease)
	if err != nil {
		return err
	}
	defer unlock()
	if err := p.driver.Resume(ctx, p.driverLease(lease)); err != nil {
		return err
	}
	lease.State, lease.PausedFor = sandbox.LeaseActive, ""
	e.emit(ctx, p, because(ctx, p, lease, event(sandbox.EventResumed, 0)))
	return p.store.SaveLease(lease)
}
