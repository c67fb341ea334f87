package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/branch"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/landing"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/seal"
	"github.com/litterbox-sandbox/litterbox/internal/store"
)

// Diff prints the delta between the base and the sandbox's present state,
// what is not committed yet included, by git diff with the user's flags.
func (e *Engine) Diff(ctx context.Context, request DiffRequest) (int, error) {
	p, err := e.find(ctx, request.Dir, request.Name)
	if err != nil {
		return 0, err
	}
	defer e.tell(p)
	present, err := e.diffTo(ctx, p, request.To)
	if err != nil {
		return 0, err
	}
	from, err := e.diffFrom(ctx, p, request)
	if err != nil {
		return 0, err
	}
	exit, err := landing.Diff(ctx, p.repo, request.Dir, from, present, request.Args, landing.Streams{Stdin: request.Stdin, Stdout: request.Stdout, Stderr: request.Stderr})
	if err != nil {
		return exit, err
	}
	_, risks, err := landing.ChangedAgainst(ctx, p.repo, p.record.Base, present)
	if request.Risky != nil {
		request.Risky(shown(risks))
	} else {
		e.warn(risks)
	}
	return exit, err
}

// present is a commit of the sandbox's present state: the branch's tip when
// nothing has changed since, and an unreferenced one otherwise.
func (e *Engine) present(ctx context.Context, p *place) (string, error) {
	if has, err := e.hasFiles(ctx, p); err != nil {
		return "", err
	} else if !has {
		return p.repo.Tip(ctx, p.record.Branch)
	}
	unlock, err := p.store.Lock(ctx, p.record.ID, "commit")
	switch {
	case err == nil:
		defer unlock()
	case !errors.Is(err, syscall.EROFS): // where nothing can be written, nobody commits meanwhile
		return "", err
	}
	request := e.importRequest(p)
	request.Preview = true
	request.Subject = "present state of " + p.record.Name
	result, err := branch.Import(ctx, p.repo, request)
	if err != nil {
		return "", fault.Wrap("", err, "cannot read what sandbox %q holds", p.record.Name)
	}
	return result.Commit, nil
}

// Merge brings the sandbox's branch onto HEAD of the user's checkout by git
// merge. With Delete the sandbox goes afterwards, when its tip really landed.
func (e *Engine) Merge(ctx context.Context, request MergeRequest) (result MergeResult, err error) {
	p, err := e.find(ctx, request.Dir, request.Name)
	if err != nil {
		return MergeResult{}, err
	}
	repo, err := git.Open(ctx, request.Dir)
	if err != nil {
		return MergeResult{}, err
	}
	verb := "apply"
	if request.Delete {
		verb = "merge"
	}
	ctx, call, err := e.record(ctx, verb, request.Dir, request.Name, map[string]any{"args": request.Args, "yes": request.Yes, "run_hooks": request.RunHooks})
	if err != nil {
		return MergeResult{}, err
	}
	landed := ""
	defer func() { err = call.close(Outcome{ExitCode: &result.ExitCode, Tip: landed, Err: err}) }()
	streams := landing.MergeOptions{Streams: landing.Streams{Stdin: request.Stdin, Stdout: request.Stdout, Stderr: request.Stderr}}
	if landing.ReadMergeFlags(request.Args).Leaves {
		exit, err := landing.RunMerge(ctx, repo, request.Args, landing.MergeTarget{Branch: p.record.Branch}, streams)
		return MergeResult{ExitCode: exit, Notes: p.notes}, errors.Join(err, landing.PutBack(ctx, repo))
	}
	if repo.HeadRef == "refs/heads/"+p.record.Branch {
		return MergeResult{}, fault.New(fault.Conflict, "cannot merge %q: your checkout is on that very branch", p.record.Branch).
			WithHint("git switch %s", p.record.BaseRef)
	}
	before, err := e.readyToLand(ctx, p, repo, request)
	defer func() { err = errors.Join(err, e.afterLanding(ctx, p, request, before, &result)) }()
	if err != nil {
		return MergeResult{}, err
	}
	// The lock is held from the look at the changes to the end of the merge,
	// so that what is approved is what lands.
	if err := e.settle(ctx, p); err != nil {
		return MergeResult{}, err
	}
	unlock, err := p.store.Lock(ctx, p.record.ID, "commit")
	if err != nil {
		return MergeResult{}, err
	}
	defer unlock()
	tip, err := p.repo.Tip(ctx, p.record.Branch)
	if err != nil {
		return MergeResult{}, err
	}
	result, finished, err := e.resume(ctx, p, repo, tip, request, streams)
	if err != nil {
		return result, err
	}
	if !finished {
		if result, err = e.mergeTip(ctx, p, repo, tip, request, streams); err != nil || result.ExitCode != 0 {
			result.Notes = append(p.notes, result.Notes...)
			return result, err
		}
	}
	landed = tip
	e.emit(ctx, p, event(sandbox.EventMerged, 0, "tip", tip))
	result.Landed, err = landing.Landed(ctx, repo, tip)
	if err == nil && request.Delete {
		unlock()
		err = e.deleteLanded(ctx, p, tip, &result)
	}
	result.Notes = append(p.notes, result.Notes...)
	return result, err
}

// resume finishes a merge of this tip that stopped at conflicts which the
// user has resolved since.
func (e *Engine) resume(ctx context.Context, p *place, repo *git.Repository, tip string, request MergeRequest, streams landing.MergeOptions) (MergeResult, bool, error) {
	under, err := landing.MergeInProgress(ctx, repo)
	if err != nil || under.Head == "" {
		return MergeResult{}, false, err
	}
	if len(under.Unmerged) > 0 {
		return MergeResult{}, false, fault.New(fault.Conflict, "cannot merge %q: the merge under way has conflicts in %s (%s)",
			p.record.Name, counted(len(under.Unmerged), "file"), strings.Join(under.Unmerged[:min(3, len(under.Unmerged))], ", ")).
			WithHint("resolve them, git add them, then litterbox merge %s; or litterbox merge %s --abort", p.record.Name, p.record.Name)
	}
	ours := under.Head == tip
	if !ours { // the sandbox may have gone on since
		if ours, err = repo.IsAncestor(ctx, under.Head, tip); err != nil {
			return MergeResult{}, false, err
		}
	}
	if !ours {
		return MergeResult{}, false, fault.New(fault.Conflict, "cannot merge %q: another merge is under way", p.record.Name).
			WithHint("git merge --continue, or git merge --abort")
	}
	result, err := e.finishMerge(ctx, p, repo, under.Head, request, streams)
	return result, err == nil && result.ExitCode == 0, err
}

// deleteLanded deletes the sandbox when nothing of it is lost by that.
func (e *Engine) deleteLanded(ctx context.Context, p *place, tip string, result *MergeResult) error {
	if !result.Landed {
		result.Notes = append(result.Notes, fmt.Sprintf("sandbox %s stays: its work is not committed on your branch yet; commit, then run litterbox merge %s again", p.record.Name, p.record.Name))
		return nil
	}
	if only := e.onlyInside(ctx, p); only != "" {
		result.Notes = append(result.Notes, fmt.Sprintf("sandbox %s stays: %s; litterbox delete %s --force deletes it", p.record.Name, only, p.record.Name))
		return nil
	}
	moved, err := e.lastWork(ctx, p, tip, result)
	if err != nil {
		return err
	}
	if moved != "" {
		result.Notes = append(result.Notes, fmt.Sprintf("sandbox %s stays: %s; run litterbox merge %s again", p.record.Name, moved, p.record.Name))
		return nil
	}
	deleted, err := e.destroy(ctx, p, tip, nil)
	if err != nil {
		return err
	}
	result.Deleted = true
	result.Notes = append(result.Notes, "the merged branch stays reachable at "+deleted.Trash)
	return nil
}

// onlyInside says what could be lost with a sandbox although all of its
// commits stay, by its last commit and its git; "" for nothing.
func (e *Engine) onlyInside(ctx context.Context, p *place) string {
	switch p.left.Count {
	case 0:
	case 1:
		return fmt.Sprintf("%q is not in its commits as it is now", p.left.First)
	default:
		return fmt.Sprintf("%d paths, %q among them, are not in its commits as they are now", p.left.Count, p.left.First)
	}
	ref := ""
	inner, err := branch.InnerHead(ctx, p.repo, p.deltaFile(), p.record.Branch)
	if err == nil {
		ref, err = branch.InnerWork(ctx, p.repo, p.quarantine(), e.workspace(p), inner)
	}
	switch {
	case err != nil:
		return "it cannot be told whether the git in it holds more than its commits: " + err.Error()
	case ref == "refs/stash":
		return "the stash of the git in it is not in its commits"
	case ref != "":
		return fmt.Sprintf("the branch %q of the git in it is not in its commits", strings.TrimPrefix(ref, "refs/heads/"))
	}
	return ""
}

// Delete ends a sandbox and moves its branch to the trash, from where it can
// be had back. Work that HEAD does not hold needs a word or Force, and files
// that no commit could take need Force.
func (e *Engine) Delete(ctx context.Context, request DeleteRequest) (result DeleteResult, err error) {
	ctx, call, err := e.record(ctx, "delete", request.Dir, request.Name, map[string]any{"force": request.Force})
	if err != nil {
		return DeleteResult{}, err
	}
	defer func() { err = call.close(Outcome{Tip: result.Tip, Err: err}) }()
	p, err := e.findToDelete(ctx, request)
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
		p.note("what lay uncommitted in the sandbox could not be saved: " + err.Error())
	}
	if !request.Force {
		if only := e.onlyInside(ctx, p); only != "" {
			return DeleteResult{}, fault.New(fault.Denied, "cannot delete sandbox %q: %s", p.record.Name, only).
				WithHint("litterbox shell %s, to bring it into a commit or to remove it, or litterbox delete %s --force", p.record.Name, p.record.Name)
		}
	}
	head := p.record.Base
	if repo, err := git.Open(ctx, request.Dir); err == nil {
		head = repo.Head
	}
	unmerged, err := landing.Unmerged(ctx, p.repo, p.record.Branch, head)
	loses = loses || unmerged > 0 || err != nil
	if request.Force && !loses {
		// Only for what is kept: what the git inside holds keeps no forced
		// deletion waiting.
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
				return DeleteResult{}, fault.New(fault.Denied, "cannot delete sandbox %q: %s", p.record.Name, notMerged(unmerged)).
					WithHint("litterbox merge %s, or litterbox delete %s --force", p.record.Name, p.record.Name)
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
	if err != nil || request.Force {
		tip = "" // whatever is there goes
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

// lookInside is how long a forced deletion looks for work that no commit has.
const lookInside = 5 * time.Second

// findToDelete also takes up deletions and creations that were cut off; it
// returns nil when clearing those away was all there was to do.
func (e *Engine) findToDelete(ctx context.Context, request DeleteRequest) (*place, error) {
	p, err := e.find(ctx, request.Dir, request.Name)
	if err == nil || fault.KindOf(err) != fault.NotFound {
		return p, err
	}
	gitDir, dirErr := gitDirOf(ctx, request.Dir)
	if dirErr != nil {
		return nil, err
	}
	slug, slugErr := sandbox.Slug(request.Name)
	if slugErr != nil {
		return nil, err
	}
	id, claimErr := e.Store.Claimed(gitDir, slug)
	if claimErr != nil || id == "" {
		return nil, err
	}
	cleared, clearErr := e.clearDead(ctx, gitDir, slug)
	if clearErr != nil {
		return nil, clearErr
	}
	if cleared {
		return nil, nil
	}
	return nil, err
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
	at := time.Now().UTC()
	if keep != nil {
		stay, why := e.keepsFiles(ctx, p)
		if stay == 0 {
			p.note("its files are not kept: " + why)
			keep = nil
		} else {
			until := at.Add(stay)
			result.Until, keep.At = &until, at
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
	if err := e.stop(ctx, p); err != nil {
		return result, err
	}
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
