package branch_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/branch"
	"github.com/litterbox-sandbox/litterbox/internal/branch/branchtest"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git/gittest"
	"github.com/litterbox-sandbox/litterbox/internal/landing"
)

// A garbage collection right before a milestone's commit is named, which has
// already looked at the refs, does not remove it.
func TestMilestoneSurvivesACollection(t *testing.T) {
	b := branchtest.New(t, gittest.Repository(t), "fix")
	b.Inside("echo x > new")
	tree := b.ImportNow().Tree
	request := branch.MilestoneRequest{ID: "id1", Branch: "fix", Onto: b.Base, Subject: "milestone", Author: b.Request().Author, State: b.State}
	commit, err := branch.Squash(gittest.Context(t), b.Repository, request, tree, func(commit string) error {
		b.Show("reflog", "expire", "--expire=now", "--all")
		b.Show("gc", "-q", "--prune=now")
		b.Show("update-ref", "refs/heads/fix", commit)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := b.Show("log", "-1", "--format=%H %P %T %s", "fix"); got != commit+" "+b.Base+" "+tree+" milestone" {
		t.Errorf("the branch is at %q", got)
	}
	b.Show("gc", "-q", "--prune=now")
	b.Show("fsck", "--full", "--strict")
	if refs := b.Show("for-each-ref", "--format=%(refname)"); strings.Contains(refs, "present") {
		t.Errorf("left behind:\n%s", refs)
	}
	if kept, err := filepath.Glob(filepath.Join(b.Repository.CommonDir, "objects/pack/*.keep")); err != nil || len(kept) > 0 {
		t.Errorf("left behind: %q, %v", kept, err)
	}
}

func TestMilestoneKeepsWhatItSquashes(t *testing.T) {
	b := branchtest.New(t, gittest.Repository(t), "fix")
	onto, ctx := b.Base, context.Background()
	for round := range 2 {
		for range 3 {
			b.Inside("echo x >> new")
			b.ImportNow()
		}
		tip := b.Show("rev-parse", "fix")
		got, err := branch.Milestone(ctx, b.Repository, branch.MilestoneRequest{
			ID: "id1", Branch: "fix", Onto: onto, Subject: "milestone", Author: b.Request().Author, State: b.State,
			Trailers: []branch.Trailer{{Key: "Sandbox", Value: "fix"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if b.Show("rev-parse", "fix") != got.Commit || b.Show("rev-parse", got.Commit+"^") != onto ||
			b.Show("rev-parse", got.Commit+"^{tree}") != b.Show("rev-parse", tip+"^{tree}") || b.Show("rev-parse", got.History) != tip {
			t.Fatalf("round %d: %+v", round, got)
		}
		onto = got.Commit
	}
	if got := b.ImportNow(); got.Changed != 0 {
		t.Fatalf("%+v", got)
	}
	b.Inside("rm new")
	if got := b.ImportNow(); got.Changed != 1 || got.Tree != b.Repository.HeadTree {
		t.Fatalf("%+v", got)
	}
	if n, err := landing.Unmerged(ctx, b.Repository, "fix", b.Base); err != nil || n != 4 {
		t.Fatalf("%d, %v", n, err)
	}
}

func TestTrashKeepsTheTip(t *testing.T) {
	b := branchtest.New(t, gittest.Repository(t), "fix")
	b.Inside("echo x > new")
	tip := b.ImportNow().Commit
	linked := filepath.Join(t.TempDir(), "linked")
	b.Show("worktree", "add", "-q", linked, "fix")
	_, _, err := branch.Trash(gittest.Context(t), b.Repository, "fix", "fix", branchtest.SomeTime)
	gittest.Kind(t, err, fault.Conflict, true)
	b.Show("worktree", "remove", linked)
	ref, got, err := branch.Trash(gittest.Context(t), b.Repository, "fix", "fix", branchtest.SomeTime)
	if err != nil || got != tip || b.Show("rev-parse", ref) != tip || !strings.HasPrefix(ref, "refs/litterbox/trash/fix-") {
		t.Fatalf("%q %q %v", ref, got, err)
	}
	_, err = b.Repository.Tip(gittest.Context(t), "fix")
	gittest.Kind(t, err, fault.NotFound, false)
	_, _, err = branch.Trash(gittest.Context(t), b.Repository, "fix", "fix", branchtest.SomeTime)
	gittest.Kind(t, err, fault.NotFound, false)
}
