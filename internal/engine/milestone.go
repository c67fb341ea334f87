package engine

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/branch"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// Milestone squashes everything since the last milestone into one commit with
// message; the squashed history stays reachable under refs/litterbox/history/.
func (e *Engine) Milestone(ctx context.Context, dir, name, message string) (result Milestoned, err error) {
	if strings.TrimSpace(message) == "" {
		return Milestoned{}, fault.New(fault.Invalid, "cannot make a milestone without a message").
			WithHint("litterbox milestone %s -m \"Add the login page\"", name)
	}
	message = e.secretsOf(ctx).Tokens(message)
	p, err := e.find(ctx, dir, name)
	if err != nil {
		return Milestoned{}, err
	}
	defer e.tell(p)
	ctx, call, err := e.recordIn(ctx, p, "milestone", map[string]any{"message": message})
	if err != nil {
		return Milestoned{}, err
	}
	defer func() { err = call.end(commitOf(result.Iteration), nil, err) }()
	running := e.stillAtWork(ctx, p)
	if err := e.settle(ctx, p); err != nil {
		return Milestoned{}, err
	}
	defer func() { // once it is unlocked
		if err == nil {
			e.snapshotAfter(ctx, p, sandbox.SnapshotMilestone)
		}
	}()
	unlock, err := p.store.Lock(ctx, p.record.ID, "commit")
	if err != nil {
		return Milestoned{}, err
	}
	defer unlock()
	fresh, err := p.store.Sandbox(p.record.ID)
	if err != nil {
		return Milestoned{}, err
	}
	*p.record = *fresh
	iteration := &sandbox.Iteration{Number: p.record.Iterations + 1, Kind: "milestone", StartedAt: time.Now()}
	subject, rest, _ := strings.Cut(strings.TrimSpace(message), "\n")
	iteration.Message = subject
	onto := p.record.Milestone
	squashed, err := branch.Milestone(ctx, p.repo, branch.MilestoneRequest{
		ID: p.record.ID, Branch: p.record.Branch, Onto: onto, Secrets: p.store.Redacts(), Subject: subject, Body: strings.TrimSpace(rest),
		Trailers: e.trailers(ctx, p.record.Name, iteration), State: p.deltaFile(), Strict: p.store.Strict(),
		Author: git.Signature{Name: p.record.Author.Name, Email: p.record.Author.Email, When: time.Now()},
	})
	if err != nil {
		return Milestoned{}, err
	}
	iteration.Commit, iteration.Duration = squashed.Commit, time.Since(iteration.StartedAt)
	p.note("the squashed commits are kept: git log " + squashed.Before[:12])
	if err := p.store.AppendIteration(p.record.ID, iteration); err != nil {
		return Milestoned{}, err
	}
	err = e.update(ctx, p, func(r *sandbox.Sandbox) {
		r.Iterations, r.Milestone, r.Last = iteration.Number, squashed.Commit, squashed.Commit
	})
	if err != nil {
		return Milestoned{Iteration: iteration, Running: running}, err
	}
	large, err := largeFiles(ctx, p.repo, onto, squashed.Commit)
	if err != nil {
		p.note("the sizes of its files are not known: " + err.Error())
	}
	return Milestoned{iteration, running, large}, nil
}

// largeFile is the size in bytes from which a file is named: git keeps each version
// of it for ever, and every clone of the repository gets all of them.
const largeFile = 1 << 20

// largeFiles lists what a commit adds or changes to more than that, the largest
// first.
func largeFiles(ctx context.Context, repo *git.Repository, from, to string) ([]LargeFile, error) {
	changes, err := repo.DiffTrees(ctx, from, to)
	if err != nil {
		return nil, err
	}
	changes = slices.DeleteFunc(changes, func(c git.TreeDiff) bool { return c.NewMode == 0 || c.NewMode == git.ModeGitlink })
	if len(changes) == 0 {
		return nil, nil
	}
	var oids strings.Builder
	for _, c := range changes {
		oids.WriteString(c.NewOid + "\n")
	}
	command := repo.Command("cat-file", "--batch-check=%(objectsize)")
	command.Stdin = strings.NewReader(oids.String())
	out, err := command.Output(ctx)
	if err != nil {
		return nil, err
	}
	var large []LargeFile
	sizes := strings.Fields(string(out))
	for i, c := range changes[:min(len(changes), len(sizes))] {
		if size, err := strconv.ParseInt(sizes[i], 10, 64); err == nil && size >= largeFile {
			large = append(large, LargeFile{c.Path, size})
		}
	}
	slices.SortStableFunc(large, func(a, b LargeFile) int { return cmp.Compare(b.Size, a.Size) })
	return large, nil
}
