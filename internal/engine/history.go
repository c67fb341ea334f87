package engine

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/branch"
	"github.com/litterbox-sandbox/litterbox/internal/config"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/landing"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// shaped is a branch that was squashed into one commit for a merge that may still
// be refused. Nil means the branch is unchanged.
type shaped struct {
	request   branch.MilestoneRequest
	made      branch.MilestoneResult
	iteration *sandbox.Iteration
	commits   int
}

// shapeHistory makes the branch what a reviewer wants to read before it is merged:
// its steps as they are, everything since the last milestone as one commit, or all
// of it as one. Replaced commits stay reachable as with a milestone. The caller
// holds the lock of commits, and calls endShape on the result.
func (e *Engine) shapeHistory(ctx context.Context, p *place, repo *git.Repository, request MergeRequest) (*shaped, error) {
	under, err := landing.MergeInProgress(ctx, repo)
	if err != nil || under.Head != "" { // it is about the tip as it stands
		return nil, err
	}
	found, err := e.settings(ctx, p.record.Repository, p.record.GitDir)
	if err != nil {
		return nil, err
	}
	fresh, err := p.store.Sandbox(p.record.ID)
	if err != nil {
		return nil, err
	}
	*p.record = *fresh
	tip, err := p.repo.Tip(ctx, p.record.Branch)
	if err != nil {
		return nil, err
	}
	chosen := request.History
	if chosen == "" {
		chosen = found.config.Git.History
	}
	onto := p.record.Milestone
	if chosen != config.HistoryMilestones {
		if onto, err = p.repo.Command("merge-base", repo.Head, tip).Line(ctx); err != nil {
			return nil, nil //nolint:nilerr // unrelated histories: git says so itself
		}
	}
	out, err := p.repo.Command("log", "--first-parent", "--format=%s", onto+".."+tip, "--").Output(ctx)
	if err != nil {
		return nil, fault.Wrap("", err, "cannot list the commits of sandbox %q", p.record.Name)
	}
	subjects := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	switch {
	case len(out) == 0 || len(subjects) < 2:
		return nil, nil
	case chosen == "" || chosen == config.HistorySteps:
		if chosen == "" && request.Introduce {
			e.introduceHistory(p, len(subjects))
		}
		return nil, nil
	}
	return e.squashFor(ctx, p, onto, subjects)
}

// squashFor makes one commit of those with the subjects, newest first.
func (e *Engine) squashFor(ctx context.Context, p *place, onto string, subjects []string) (*shaped, error) {
	iteration := &sandbox.Iteration{Number: p.record.Iterations + 1, Kind: "milestone", StartedAt: time.Now(), Message: subjects[0]}
	log, err := p.store.Iterations(p.record.ID)
	if err != nil {
		return nil, err
	}
	for _, one := range log { // a milestone was worded for readers; the last one counts
		if one.Kind == "milestone" && slices.Contains(subjects, one.Message) {
			iteration.Message = one.Message
		}
	}
	const most = 50
	var body strings.Builder
	for n := len(subjects) - 1; n >= 0 && len(subjects)-n <= most; n-- {
		body.WriteString("- " + subjects[n] + "\n")
	}
	if more := len(subjects) - most; more > 0 {
		body.WriteString("- and " + counted(more, "step") + " more\n")
	}
	one := &shaped{iteration: iteration, commits: len(subjects), request: branch.MilestoneRequest{
		ID: p.record.ID, Branch: p.record.Branch, Onto: onto, Secrets: p.store.Redacts(), Subject: iteration.Message, Body: strings.TrimSpace(body.String()),
		Trailers: e.trailers(ctx, p.record.Name, iteration), State: p.deltaFile(), Strict: p.store.Strict(),
		Author: git.Signature{Name: p.record.Author.Name, Email: p.record.Author.Email, When: time.Now()},
	}}
	one.made, err = branch.Milestone(ctx, p.repo, one.request)
	if err != nil {
		return nil, err
	}
	iteration.Commit, iteration.Duration = one.made.Commit, time.Since(iteration.StartedAt)
	return one, nil
}

// endShape records the commit that a merge has taken or is about to take, and
// gives the branch its steps back when the merge was refused.
func (e *Engine) endShape(ctx context.Context, p *place, repo *git.Repository, one *shaped, merged bool) error {
	if one == nil {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	if !merged { // git may have it all the same: stopped at conflicts, or merged and then judged
		under, err := landing.MergeInProgress(ctx, repo)
		if err != nil {
			return err
		}
		landed, err := landing.Landed(ctx, repo, one.made.Commit)
		if err != nil {
			return err
		}
		if under.Head != one.made.Commit && !landed {
			return branch.TakeBack(ctx, p.repo, one.request, one.made)
		}
	}
	if err := p.store.AppendIteration(p.record.ID, one.iteration); err != nil {
		return err
	}
	p.note(counted(one.commits, "commit") + " became one; they are kept: git log " + one.made.Before[:12])
	return e.update(ctx, p, func(r *sandbox.Sandbox) {
		r.Iterations, r.Milestone, r.Last = one.iteration.Number, one.made.Commit, one.made.Commit
	})
}

// introducedFile marks a repository whose user has been told once.
const introducedFile = "history-introduced"

// introduceHistory says, at the first merge of a repository, what lands and how
// to change it.
func (e *Engine) introduceHistory(p *place, commits int) {
	f, err := os.OpenFile(filepath.Join(e.Store.RepositoryDir(p.record.GitDir), introducedFile), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return // said before, or saying it cannot be recorded
	}
	_ = f.Close() // it is empty
	p.note(counted(commits, "step") + ` of the sandbox land as they are; --squash=milestone or --squash=all makes one commit of them, and history = "milestones" or "one" below [git] in .litterbox.toml does so each time`)
}
