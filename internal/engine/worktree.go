package engine

import (
	"context"
	"path/filepath"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/keeper"
	"github.com/litterbox-sandbox/litterbox/internal/landing"
	"github.com/litterbox-sandbox/litterbox/internal/layer"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// Path gives the directory that holds the committed state of a sandbox as plain
// files, and brings it up to date first. It is outside the checkout.
func (e *Engine) Path(ctx context.Context, dir, name string) (string, error) {
	p, err := e.find(ctx, dir, name)
	if err != nil {
		return "", err
	}
	defer e.tell(p)
	defer e.busy("updating the files of " + p.record.Name)() // the keeper may be at it, too
	tip, err := p.repo.Tip(ctx, p.record.Branch)
	if err != nil {
		return "", fault.Wrap("", err, "cannot show the files of sandbox %q", p.record.Name)
	}
	return landing.UpdateWorktree(ctx, p.repo, p.worktree(), tip, false, layer.Progress(e.Progress))
}

func (p *place) worktree() landing.Worktree {
	return landing.Worktree{Name: p.record.Name, State: p.path(keeper.WorktreeDir), Old: p.path(keeper.OldWorktreeDir)}
}

// moveWorktree removes a worktree that an earlier version put into the checkout. A
// failure stops no command.
func (e *Engine) moveWorktree(ctx context.Context, p *place) {
	if !landing.HasOldWorktree(p.repo, p.worktree()) {
		return
	}
	note, err := landing.MoveWorktree(ctx, p.repo, p.worktree())
	if err != nil {
		note = err.Error()
	}
	if note != "" {
		p.note(note)
	}
}

// moveListedWorktree does the same for a sandbox that is only listed.
func (e *Engine) moveListedWorktree(ctx context.Context, record *sandbox.Sandbox) {
	if !fileExists(filepath.Join(e.Store.SandboxDir(record.ID), keeper.OldWorktreeDir)) {
		return
	}
	if p, err := e.open(ctx, record); err == nil {
		e.moveWorktree(ctx, p)
		e.tell(p)
	}
}
