package engine

import (
	"context"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// findOrphan is the one sandbox called name whose repository is gone; nil when
// there is none, or more than one.
func (e *Engine) findOrphan(ctx context.Context, name string) *place {
	slug, err := sandbox.Slug(name)
	if err != nil {
		return nil
	}
	records, _, err := e.Store.Sandboxes() // a record that cannot be read is none to delete
	if err != nil {
		return nil
	}
	var found *place
	for _, record := range records {
		if record.Name != slug || !orphaned(record) || e.Drivers.Get(record.Driver) == nil {
			continue
		}
		if found != nil {
			return nil
		}
		found = e.orphan(ctx, record)
	}
	return found
}

// elsewhere explains why slug names no sandbox here. When a sandbox of that name
// has lost its repository, the next step is to reattach it; else a similar name may
// be meant.
func (e *Engine) elsewhere(ctx context.Context, dir, slug string, err error) error {
	orphan := e.findOrphan(ctx, slug)
	if orphan == nil || fault.KindOf(err) != fault.NotFound && fault.KindOf(err) != fault.AlreadyExists {
		return e.noSandbox(ctx, dir, slug, err)
	}
	record := orphan.record
	moved := fault.New(fault.KindOf(err), "sandbox %q has lost its repository, which was at %s", record.Name, record.Repository)
	if repo, err := git.Open(ctx, dir); err == nil {
		if has, err := repo.Has(ctx, record.Base); err == nil && has {
			return moved.WithHint("litterbox reattach")
		}
	}
	return moved.WithHint("cd to its new location or a new clone, then litterbox reattach")
}

// strays are those of the sandboxes that have lost their repository and that
// Reattach would give to the one at dir.
func (e *Engine) strays(ctx context.Context, dir string, records []*sandbox.Sandbox) (strays []Info, err error) {
	var repo *git.Repository
	for _, record := range records {
		if !orphaned(record) || record.State == sandbox.Deleting {
			continue
		}
		if repo == nil {
			if repo, err = git.Open(ctx, dir); err != nil {
				return nil, err
			}
		}
		wanted, err := e.lost(ctx, repo, record, "")
		if err != nil {
			return nil, err
		}
		if wanted {
			strays = append(strays, e.info(record, "", sandbox.Orphaned, nil))
		}
	}
	return strays, nil
}

// orphan prepares the work on a sandbox without a repository.
func (e *Engine) orphan(ctx context.Context, record *sandbox.Sandbox) *place {
	return e.place(record, git.At(ctx, record.GitDir, "", record.Base), e.Drivers.Get(record.Driver))
}

// deleteOrphan deletes a sandbox that has no repository: no branch, no trash.
func (e *Engine) deleteOrphan(ctx context.Context, p *place, force bool) (DeleteResult, error) {
	if !force {
		return DeleteResult{}, fault.New(fault.Denied, "cannot delete sandbox %q: its repository is gone, so nothing else has its work", p.record.Name).
			WithHint("litterbox reattach in a new clone, or litterbox delete %s --force", p.record.Name)
	}
	ctx = context.WithoutCancel(ctx)
	if err := e.markDeleting(ctx, p); err != nil {
		return DeleteResult{}, err
	}
	if err := e.stop(ctx, p); err != nil {
		return DeleteResult{}, err
	}
	if err := e.remove(p); err != nil {
		return DeleteResult{}, err
	}
	e.emit(ctx, p, event(sandbox.EventDeleted, 0))
	return DeleteResult{Name: p.record.Name}, nil
}
