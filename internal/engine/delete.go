package engine

import (
	"context"
	"errors"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/branch"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/landing"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/seal"
	"github.com/litterbox-sandbox/litterbox/internal/store"
)

// Delete ends a sandbox and moves its branch to the trash, from where it can be
// restored. Work that HEAD does not hold needs confirmation or Force, and files
// that no commit could take need Force.
func (e *Engine) Delete(ctx context.Context, request DeleteRequest) (result DeleteResult, err error) {
	p, err := e.find(ctx, request.Dir, request.Name)
	ctx, call, recordErr := e.Begin(ctx, Actor{Via: "cli"}, Action{
		Name: "delete", Dir: request.Dir, Sandbox: request.Name, Arguments: map[string]any{"force": request.Force}, found: p,
	})
	if recordErr != nil {
		return DeleteResult{}, recordErr
	}
	defer func() { err = call.close(Outcome{Tip: result.Tip, Err: err}) }()
	if fault.KindOf(err) == fault.NotFound {
		err = e.clearCutOff(ctx, request, err)
	}
	if errors.Is(err, seal.ErrDamaged) && request.Force {
		if gitDir, dirErr := gitDirOf(ctx, request.Dir); dirErr == nil {
			if slug, slugErr := sandbox.Slug(request.Name); slugErr == nil {
				if id, claimErr := e.Store.Claimed(gitDir, slug); claimErr == nil && id != "" {
					return e.deleteUnreadable(context.WithoutCancel(ctx), request, slug, id)
				}
			}
		}
	}
	if err != nil {
		if orphan := e.findOrphan(ctx, request.Name); orphan != nil && fault.KindOf(err) == fault.NotFound {
			return e.deleteOrphan(ctx, orphan, request.Force)
		}
		return DeleteResult{}, err
	}
	if p == nil {
		return DeleteResult{Name: request.Name}, nil
	}
	defer e.tell(p)
	if request.Stop && !request.Force && request.Confirm == nil {
		// Work goes on where commits refuse the deletion anyway.
		if unmerged, err := e.notInCheckout(ctx, p, request.Dir); err == nil && unmerged > 0 {
			return DeleteResult{}, unmergedRefusal(p, unmerged)
		}
	}
	ended, err := e.readyToDelete(ctx, p, request)
	defer func() {
		result.Ended = ended
		if err != nil {
			err = errors.Join(err, e.stays(ctx, p, ended))
		}
	}()
	if err != nil {
		return DeleteResult{}, err
	}
	loses := false // something that no commit of another branch has
	if err := e.settle(ctx, p); err != nil {
		if !request.Force {
			return DeleteResult{}, err
		}
		loses = true
		p.note("uncommitted changes in the sandbox could not be saved: " + err.Error())
	}
	if !request.Force {
		if only := e.onlyInside(ctx, p); only != "" {
			return DeleteResult{}, fault.New(fault.Denied, "cannot delete sandbox %q: %s", p.record.Name, only).
				WithHint("litterbox shell %s, to bring it into a commit or to remove it, or litterbox delete %s --force", p.record.Name, p.record.Name)
		}
	}
	unmerged, err := e.notInCheckout(ctx, p, request.Dir)
	loses = loses || unmerged > 0 || err != nil
	if request.Force && !loses {
		// Only for what is kept: the git inside does not delay a forced deletion.
		looking, cancel := context.WithTimeout(ctx, lookInside)
		loses = e.onlyInside(looking, p) != ""
		cancel()
	}
	if !request.Force {
		if err != nil {
			return DeleteResult{}, err
		}
		if unmerged > 0 {
			if request.Confirm == nil {
				return DeleteResult{}, unmergedRefusal(p, unmerged)
			}
			yes, err := request.Confirm(unmerged)
			if err != nil {
				return DeleteResult{}, err
			}
			if !yes {
				return DeleteResult{}, fault.New(fault.Canceled, "sandbox %q was not deleted", p.record.Name)
			}
		}
	}
	tip, err := p.repo.Tip(ctx, p.record.Branch)
	if err != nil && fault.KindOf(err) != fault.NotFound {
		return DeleteResult{}, err
	}
	if request.Force {
		tip = "" // everything there goes
	}
	if loses && !request.Purge && !request.Lean {
		return e.destroy(ctx, p, tip, &store.Deletion{Commits: unmerged})
	}
	result, err = e.destroy(ctx, p, tip, nil)
	if err == nil && request.Purge && result.Trash != "" {
		dropped := branch.DropTrash(context.WithoutCancel(ctx), p.repo, branch.Trashed{Ref: result.Trash, Name: p.record.Name, Tip: result.Tip})
		if dropped == nil {
			result.Trash = ""
		} else {
			p.note("its last commit stays in the trash: " + dropped.Error())
		}
	}
	return result, err
}

// notInCheckout counts the commits of a sandbox that the checkout at dir does not hold.
func (e *Engine) notInCheckout(ctx context.Context, p *place, dir string) (int, error) {
	head := p.record.From()
	if repo, err := git.Open(ctx, dir); err == nil {
		head = repo.Head
	}
	return landing.Unmerged(ctx, p.repo, p.record.Branch, head)
}

func unmergedRefusal(p *place, commits int) error {
	return fault.New(fault.Denied, "cannot delete sandbox %q: %s", p.record.Name, notMerged(commits)).
		WithHint("litterbox merge %s, or litterbox delete %s --force", p.record.Name, p.record.Name)
}

// lookInside is how long a forced deletion looks for work that no commit has.
const lookInside = 5 * time.Second

// clearCutOff clears away a deletion or a creation that was cut off; when there is
// none, the error is that of the search for the sandbox.
func (e *Engine) clearCutOff(ctx context.Context, request DeleteRequest, notFound error) error {
	gitDir, err := gitDirOf(ctx, request.Dir)
	if err != nil {
		return notFound
	}
	slug, err := sandbox.Slug(request.Name)
	if err != nil {
		return notFound
	}
	id, err := e.Store.Claimed(gitDir, slug)
	if err != nil || id == "" {
		return notFound
	}
	cleared, err := e.clearDead(ctx, gitDir, slug)
	if err != nil {
		return err
	}
	if cleared {
		return nil
	}
	return notFound
}

// destroy takes a sandbox apart. The record says so first, so that a crash in
// the middle is finished by the next create or delete of that name; the
// branch is in the trash before any file goes. With keep its files go there too,
// where there is room. With a tip it is given up when a run has begun or ended
// since the branch stood there.
func (e *Engine) destroy(ctx context.Context, p *place, tip string, keep *store.Deletion) (DeleteResult, error) {
	defer e.busy("deleting " + p.record.Name)()
	ctx = context.WithoutCancel(ctx)
	result := DeleteResult{Name: p.record.Name}
	at := e.now().UTC()
	if keep != nil {
		stay, why := e.keepsFiles(ctx, p)
		if stay == 0 {
			p.note("its files are not kept: " + why)
			keep = nil
		} else {
			until := at.Add(stay)
			result.Until, keep.At = &until, at
			keep.Far = p.farSize(ctx)
		}
	}
	// Before the record says that it is being deleted: cut off after that, its
	// files are kept all the same.
	if keep != nil {
		if err := p.store.SaveDeletion(p.record.ID, *keep); err != nil {
			return result, err
		}
	} else if err := p.store.DropDeletion(p.record.ID); err != nil {
		return result, err
	}
	// Marked before the branch goes: cut off in between, the next command knows
	// what was meant.
	was := p.record.State
	if err := e.markDeleting(ctx, p); err != nil {
		return result, err
	}
	err := e.undisturbed(ctx, p, tip)
	if err != nil {
		return result, errors.Join(err, e.update(ctx, p, func(r *sandbox.Sandbox) { r.State = was }))
	}
	if result.Trash, result.Tip, err = branch.Trash(ctx, p.repo, p.record.Branch, p.record.Name, at); err != nil && fault.KindOf(err) != fault.NotFound {
		return result, errors.Join(err, e.update(ctx, p, func(r *sandbox.Sandbox) { r.State = was }))
	}
	if err := e.endForGood(ctx, p); err != nil {
		return result, err
	}
	e.endInstallation(ctx, p)
	if keep != nil {
		keep.Tip = result.Tip
		if err := e.intoTrash(p, *keep); err != nil {
			return result, err
		}
		e.emit(ctx, p, event(sandbox.EventDeleted, 0, "tip", result.Tip, "trash", result.Trash))
		return result, nil
	}
	if err := p.repo.Unpin(ctx, p.record.ID); err != nil {
		return result, err
	}
	if err := e.remove(p); err != nil {
		return result, err
	}
	e.emit(ctx, p, event(sandbox.EventDeleted, 0, "tip", result.Tip, "trash", result.Trash))
	return result, nil
}
