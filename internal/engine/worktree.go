package engine

import (
	"context"

	"github.com/litterbox-sandbox/litterbox/internal/branch"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/keeper"
)

// Path gives the directory in the user's checkout that holds the committed
// state of a sandbox as plain files, and brings it up to date first.
func (e *Engine) Path(ctx context.Context, dir, name string) (string, error) {
	p, err := e.find(ctx, dir, name)
	if err != nil {
		return "", err
	}
	defer e.tell(p)
	tip, err := p.repo.Tip(ctx, p.record.Branch)
	if err != nil {
		return "", fault.Wrap("", err, "cannot show the files of sandbox %q", p.record.Name)
	}
	return p.repo.UpdateWorktree(ctx, p.worktree(), tip, false, branch.Progress(e.Progress))
}

func (p *place) worktree() branch.Worktree {
	return branch.Worktree{Name: p.record.Name, State: p.path(keeper.WorktreeDir)}
}
