package branch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/redact"
)

// MilestoneRequest asks to squash a branch onto a commit it contains.
type MilestoneRequest struct {
	ID       string // the sandbox's; names the history refs
	Branch   string
	Onto     string // the milestone before, or the base
	Subject  string
	Body     string
	Trailers []Trailer
	Secrets  redact.Secrets // those that the message must not show
	Author   git.Signature
	State    string // the sandbox's delta file
	Strict   bool   // as in ImportRequest
}

// MilestoneResult is the squashed commit and the place of its history.
type MilestoneResult struct {
	Commit  string
	History string // ref that keeps the commits from being lost
	Before  string // the last of them
}

// Milestone makes everything between Onto and the tip one commit. The tip it
// replaces is kept under refs/litterbox/history/ in the same transaction. The
// caller holds the sandbox's lock.
func Milestone(ctx context.Context, r *git.Repository, q MilestoneRequest) (result MilestoneResult, err error) {
	err = git.DespiteCollection(ctx, func(again bool) error {
		if again {
			r.DropKeeps()
		}
		result, err = milestone(ctx, r, q)
		return err
	})
	return result, err
}

func milestone(ctx context.Context, r *git.Repository, q MilestoneRequest) (MilestoneResult, error) {
	if err := errors.Join(git.CheckRef(q.Branch), git.CheckRef(q.ID), git.CheckOids(q.Onto)); err != nil {
		return MilestoneResult{}, err
	}
	tip, tree, err := r.Resolve(ctx, git.Heads+q.Branch)
	if err != nil {
		return MilestoneResult{}, err
	}
	switch ok, err := r.IsAncestor(ctx, q.Onto, tip); {
	case err != nil:
		return MilestoneResult{}, err
	case !ok:
		return MilestoneResult{}, fault.New(fault.Conflict,
			"cannot squash the branch %q: it no longer contains %s", q.Branch, q.Onto)
	}
	n, err := nextHistory(ctx, r, q.ID)
	if err != nil {
		return MilestoneResult{}, err
	}
	result := MilestoneResult{History: fmt.Sprintf("%s%s/%d", git.HistoryRefs, q.ID, n), Before: tip}
	followed := false
	result.Commit, err = squash(ctx, r, q, tree, func(commit string) error {
		if followed, err = follow(ctx, r, q, commit, tip); err != nil {
			return err
		}
		return r.UpdateRefs(ctx, "cannot squash the branch", q.Branch,
			"create "+result.History+"\x00"+tip+"\x00",
			"update "+git.Heads+q.Branch+"\x00"+commit+"\x00"+tip+"\x00")
	})
	if err != nil {
		return MilestoneResult{}, err
	}
	if followed {
		return result, commitStaged(q.State)
	}
	return result, nil
}

// TakeBack undoes a milestone that has no later commits: the branch gets its
// steps back, and the ref that kept them goes. With further commits it does
// nothing. The caller holds the sandbox's lock.
func TakeBack(ctx context.Context, r *git.Repository, q MilestoneRequest, made MilestoneResult) error {
	tip, _, err := r.Resolve(ctx, git.Heads+q.Branch)
	if err != nil || tip != made.Commit {
		return err
	}
	before, _, err := r.Resolve(ctx, made.History)
	if err != nil {
		return err
	}
	followed, err := follow(ctx, r, q, before, tip)
	if err != nil {
		return err
	}
	err = r.UpdateRefs(ctx, "cannot give its steps back to the branch", q.Branch,
		"update "+git.Heads+q.Branch+"\x00"+before+"\x00"+tip+"\x00",
		"delete "+made.History+"\x00"+before+"\x00")
	if err == nil && followed {
		err = commitStaged(q.State)
	}
	return err
}

// squash makes the commit and calls name to give it a ref. Meanwhile its pack
// is kept: a collection that looked at the refs before cannot remove it
// afterwards, as it could a loose object.
func squash(ctx context.Context, r *git.Repository, q MilestoneRequest, tree string, name func(commit string) error) (string, error) {
	f, err := r.StartFastImport(ctx, q.State+git.PacksSuffix, q.Strict)
	if err != nil {
		return "", err
	}
	defer f.Stop()
	never := git.PreviewRefs + q.Branch // git wants a ref, which must not exist
	if err := f.Begin(never, q.Author, q.Author, commitMessage(q.Secrets, q.Subject, q.Body, q.Trailers), q.Onto); err != nil {
		return "", fault.Wrap("", err, "cannot make the milestone")
	}
	f.Edit(git.Edit{Mode: git.ModeTree, Oid: tree})
	commit, err := f.End()
	if err == nil {
		f.Reset(never, r.Zero())
		err = f.Keep()
	}
	if err != nil {
		return "", fault.Wrap("", err, "cannot make the milestone")
	}
	if err := name(commit); err != nil {
		return "", err
	}
	return commit, f.Finish()
}

// follow records in the delta the commit that replaces the tip. The tree is
// the same, so nothing else changes. Without a delta file there is nothing to
// record: the next import rebuilds it.
func follow(ctx context.Context, r *git.Repository, q MilestoneRequest, commit, tip string) (bool, error) {
	d, err := currentDelta(ctx, r, q.State, git.Heads+q.Branch)
	if d == nil || err != nil {
		return false, err
	}
	d.shared = d.shared || d.last != tip
	d.last = commit
	return true, d.stage(q.State, false)
}

func nextHistory(ctx context.Context, r *git.Repository, id string) (int, error) {
	out, err := r.Command("for-each-ref", "--format=%(refname)", git.HistoryRefs+id+"/").Output(ctx)
	if err != nil {
		return 0, fault.Wrap("", err, "cannot list the history of the sandbox")
	}
	last := 0
	for name := range strings.Lines(string(out)) {
		var n int
		if _, err := fmt.Sscanf(strings.TrimPrefix(name, git.HistoryRefs+id+"/"), "%d", &n); err == nil {
			last = max(last, n)
		}
	}
	return last + 1, nil
}

// Trash deletes a branch and keeps its tip reachable under refs/litterbox/trash/,
// in one transaction. It refuses, with Conflict, a branch that is checked out in
// a work tree.
func Trash(ctx context.Context, r *git.Repository, branch, name string, at time.Time) (ref, tip string, err error) {
	if err := errors.Join(git.CheckRef(branch), git.CheckRef(name)); err != nil {
		return "", "", err
	}
	switch where, err := checkedOut(ctx, r, branch); {
	case err != nil:
		return "", "", err
	case where != "":
		return "", "", fault.New(fault.Conflict, "cannot delete the branch %q: it is checked out in %q", branch, where).
			WithHint("git -C %q switch --detach", where)
	}
	if tip, err = r.Tip(ctx, branch); err != nil {
		return "", "", err
	}
	ref = TrashRef(name, at)
	err = r.UpdateRefs(ctx, "cannot delete the branch", branch,
		"create "+ref+"\x00"+tip+"\x00", "delete "+git.Heads+branch+"\x00"+tip+"\x00")
	if err != nil && trashed(ctx, r, branch, ref, tip) {
		err = nil // git died after doing it
	}
	return ref, tip, err
}

// trashed reports whether a branch is gone and the ref in the trash has its tip.
func trashed(ctx context.Context, r *git.Repository, branch, ref, tip string) bool {
	if _, err := r.Tip(ctx, branch); fault.KindOf(err) != fault.NotFound {
		return false
	}
	kept, err := r.Command("rev-parse", "--verify", "--quiet", ref).Line(ctx)
	return err == nil && kept == tip
}

// checkedOut returns the work tree that has the branch checked out, if any.
func checkedOut(ctx context.Context, r *git.Repository, branch string) (string, error) {
	out, err := r.Command("worktree", "list", "--porcelain").Output(ctx)
	if err != nil {
		return "", fault.Wrap("", err, "cannot list the work trees of the repository")
	}
	where := ""
	for line := range bytes.Lines(out) {
		key, value, _ := strings.Cut(strings.TrimSuffix(string(line), "\n"), " ")
		switch {
		case key == "worktree":
			where = value
		case key == "branch" && value == git.Heads+branch:
			return where, nil
		}
	}
	return "", nil
}

// checkedOutAt is checkedOut without a process, for code that must be fast: it
// reads HEAD of every work tree. It may miss one (another ref storage), so
// safety never depends on it.
func checkedOutAt(r *git.Repository, branch string) string {
	names, _ := filepath.Glob(filepath.Join(r.CommonDir, "worktrees", "*", "HEAD")) // only a bad pattern fails
	for _, name := range append(names, filepath.Join(r.CommonDir, "HEAD")) {
		head, err := os.ReadFile(name)
		if err != nil || strings.TrimSpace(string(head)) != "ref: "+git.Heads+branch {
			continue
		}
		if where, err := os.ReadFile(filepath.Join(filepath.Dir(name), "gitdir")); err == nil {
			return filepath.Dir(strings.TrimSpace(string(where)))
		}
		return filepath.Dir(r.CommonDir)
	}
	return ""
}
