package branch

import (
	"context"
	"errors"
	"fmt"

	"github.com/litterbox-sandbox/litterbox/internal/git"
)

// BackRequest asks to move a branch back to an earlier commit.
type BackRequest struct {
	ID     string // the sandbox's; names the history refs
	Branch string
	To     string // commit; its tree is that of the tip
	State  string // the sandbox's delta file
}

// Back moves a branch back to a commit with the same tree as its tip, which stays
// reachable under refs/litterbox/history/. It reports whether the trees are the
// same, and does nothing if they are not. The caller holds the sandbox's lock.
func Back(ctx context.Context, r *git.Repository, q BackRequest) (bool, error) {
	if err := errors.Join(git.CheckRef(q.Branch), git.CheckRef(q.ID), git.CheckOids(q.To)); err != nil {
		return false, err
	}
	tip, tree, err := r.Resolve(ctx, git.Heads+q.Branch)
	if err != nil {
		return false, err
	}
	_, wanted, err := r.Resolve(ctx, q.To)
	if err != nil || wanted != tree {
		return false, err
	}
	if tip == q.To {
		return true, nil
	}
	n, err := nextHistory(ctx, r, q.ID)
	if err != nil {
		return false, err
	}
	followed, err := follow(ctx, r, MilestoneRequest{Branch: q.Branch, State: q.State}, q.To, tip)
	if err != nil {
		return false, err
	}
	if err := r.UpdateRefs(ctx, "cannot move the branch", q.Branch,
		fmt.Sprintf("create %s%s/%d\x00%s\x00", git.HistoryRefs, q.ID, n, tip),
		"update "+git.Heads+q.Branch+"\x00"+q.To+"\x00"+tip+"\x00"); err != nil {
		return false, err
	}
	if followed {
		return true, commitStaged(q.State)
	}
	return true, nil
}

// KeepHistory makes a ref under refs/litterbox/history/ for a commit that its
// branch no longer holds, and returns the ref. The caller holds the sandbox's lock.
func KeepHistory(ctx context.Context, r *git.Repository, id, commit string) (string, error) {
	if err := errors.Join(git.CheckRef(id), git.CheckOids(commit)); err != nil {
		return "", err
	}
	n, err := nextHistory(ctx, r, id)
	if err != nil {
		return "", err
	}
	ref := fmt.Sprintf("%s%s/%d", git.HistoryRefs, id, n)
	return ref, r.UpdateRefs(ctx, "cannot keep the history of", id, "create "+ref+"\x00"+commit+"\x00")
}
