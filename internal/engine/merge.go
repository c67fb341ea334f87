package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/litterbox-sandbox/litterbox/internal/branch"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/landing"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// Diff prints the delta between the base and the sandbox's present state,
// uncommitted changes included, by git diff with the user's flags.
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
	absent, err := landing.Absent(ctx, request.Dir, from, present, request.Args)
	if err != nil {
		return 0, err
	}
	if absent != "" {
		return 0, fault.New(fault.NotFound, "cannot compare %q: neither sandbox %q nor what it is compared with has it", absent, p.record.Name).
			WithHint("litterbox diff %s --name-only", p.record.Name)
	}
	exit, err := landing.Diff(ctx, p.repo, request.Dir, from, present, request.Args, landing.Streams{Stdin: request.Stdin, Stdout: request.Stdout, Stderr: request.Stderr})
	if err != nil {
		return exit, err
	}
	_, risks, err := landing.ChangedAgainst(ctx, p.repo, p.record.From(), present)
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
	case !errors.Is(err, syscall.EROFS): // where nothing can be written, no one commits meanwhile
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

// presentToSee is present for who only looks, for whom no sandbox is started. The
// files of a stopped one may be in its machine: then the branch's tip stands for them,
// and a note says so.
func (e *Engine) presentToSee(ctx context.Context, p *place) (string, error) {
	if p.far() {
		if state, _ := e.state(ctx, p.record); state == sandbox.Stopped {
			p.note(fmt.Sprintf("sandbox %s is stopped: only what it has committed is compared; for changes since then: litterbox start %s", p.record.Name, p.record.Name))
			return p.repo.Tip(ctx, p.record.Branch)
		}
	}
	return e.present(ctx, p)
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
	ctx, call, err := e.recordIn(ctx, p, request.verb(), map[string]any{"args": request.Args, "yes": request.Yes, "run_hooks": request.RunHooks})
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
		return MergeResult{}, fault.New(fault.Conflict, "cannot %s %q: your checkout is on that very branch", request.verb(), p.record.Branch).
			WithHint("git switch %s", p.record.BaseRef)
	}
	before, err := e.readyToLand(ctx, p, repo, request)
	defer func() { err = errors.Join(err, e.afterLanding(ctx, p, request, before, &result)) }()
	if err != nil {
		return MergeResult{}, err
	}
	// The lock is held from the look at the changes to the end of the merge, so
	// that exactly what is approved lands.
	if err := e.settle(ctx, p); err != nil {
		return MergeResult{}, err
	}
	unlock, err := p.store.Lock(ctx, p.record.ID, "commit")
	if err != nil {
		return MergeResult{}, err
	}
	defer unlock()
	shape, err := e.shapeHistory(ctx, p, repo, request)
	if err != nil {
		return MergeResult{}, err
	}
	tip, err := p.repo.Tip(ctx, p.record.Branch)
	if err != nil {
		return MergeResult{}, errors.Join(err, e.endShape(ctx, p, repo, shape, false))
	}
	result, finished, err := e.resume(ctx, p, repo, tip, request, streams)
	if err != nil {
		return result, errors.Join(err, e.endShape(ctx, p, repo, shape, false))
	}
	if !finished {
		result, err = e.mergeTip(ctx, p, repo, tip, request, streams)
		merged := err == nil && result.ExitCode == 0
		if err = errors.Join(err, e.endShape(ctx, p, repo, shape, merged)); err != nil || !merged {
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
		return MergeResult{}, false, fault.New(fault.Conflict, "cannot %s %q: the merge under way has conflicts in %s (%s)",
			request.verb(), p.record.Name, counted(len(under.Unmerged), "file"), strings.Join(under.Unmerged[:min(3, len(under.Unmerged))], ", ")).
			WithHint("resolve them, git add them, then litterbox %[1]s %[2]s; or litterbox %[1]s %[2]s --abort", request.verb(), p.record.Name)
	}
	ours := under.Head == tip
	if !ours { // the sandbox may have gone on since
		if ours, err = repo.IsAncestor(ctx, under.Head, tip); err != nil {
			return MergeResult{}, false, err
		}
	}
	if !ours {
		return MergeResult{}, false, fault.New(fault.Conflict, "cannot %s %q: another merge is under way", request.verb(), p.record.Name).
			WithHint("git merge --continue, or git merge --abort")
	}
	result, err := e.finishMerge(ctx, p, repo, under.Head, request, streams)
	return result, err == nil && result.ExitCode == 0, err
}

// deleteLanded deletes the sandbox when that loses nothing.
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

// onlyInside names what could be lost with a sandbox even though all its commits
// stay, by its last commit and its git; "" for nothing.
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
		return "cannot tell whether the git in it holds more than its commits: " + err.Error()
	case ref == "refs/stash":
		return "the stash of the git in it is not in its commits"
	case ref != "":
		return fmt.Sprintf("the branch %q of the git in it is not in its commits", strings.TrimPrefix(ref, "refs/heads/"))
	}
	return ""
}
