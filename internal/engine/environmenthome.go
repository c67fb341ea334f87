package engine

import (
	"context"
	"slices"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/live"
	"github.com/litterbox-sandbox/litterbox/internal/process"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// remakeHome makes a home that is gone again, and returns the state afterwards. The
// project is mounted below the home: an environment that runs has lost it too, and
// starts again.
func (e *Engine) remakeHome(ctx context.Context, p *place, state sandbox.State) (sandbox.State, error) {
	if !live.HomeGone(p.dir) {
		return state, nil
	}
	unlock, err := p.store.Lock(ctx, p.record.ID, "home")
	if err != nil {
		return state, err
	}
	defer unlock()
	if !live.HomeGone(p.dir) { // another shell was faster
		state, _ = e.state(ctx, p.record)
		return state, nil
	}
	note := "the home of environment " + p.record.Name + " was gone: it is made again"
	if state != sandbox.Stopped {
		cycles, err := e.Store.LiveCycles(ctx, p.record.ID)
		if err != nil {
			return state, err
		}
		if slices.ContainsFunc(cycles, func(c sandbox.Cycle) bool { return process.Alive(c.Holder) }) {
			return state, fault.New(fault.Conflict, "cannot use environment %s: its home was removed, and commands run in it", p.record.Name).
				WithHint("end them, then repeat; or litterbox env delete --stop %s", quoteCommand([]string{p.record.Repository}))
		}
		if err := e.stop(ctx, p); err != nil {
			return state, err
		}
		note += ", and the environment starts again"
	}
	if err := e.makeHome(ctx, p); err != nil {
		return state, err
	}
	p.note(note)
	return sandbox.Stopped, nil
}

// makeHome makes the home of an environment that does not run.
func (e *Engine) makeHome(ctx context.Context, p *place) error {
	author, _ := p.repo.Identity(ctx) // without one, a commit inside says what is missing
	return live.FurnishHome(p.dir, author.Name, author.Email, e.upperOwner(p))
}
