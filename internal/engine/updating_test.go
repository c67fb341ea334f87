package engine_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git/gittest"
)

// hostCommits makes a commit on the branch of the human's checkout.
func (w *world) hostCommits(t *testing.T, path, content string) string {
	t.Helper()
	gittest.Write(t, w.dir, path, content)
	gittest.Git(t, w.dir, "add", ".")
	gittest.Git(t, w.dir, "commit", "-qm", "change "+path)
	return gittest.Git(t, w.dir, "rev-parse", "HEAD")
}

// An update brings the base's newer commits into branch and files, by merge or by
// rebase, and another one finds nothing to do.
func TestUpdateToANewerBase(t *testing.T) {
	for _, rebase := range []bool{false, true} {
		t.Run(map[bool]string{false: "merge", true: "rebase"}[rebase], func(t *testing.T) {
			w, ctx := begun(t)
			w.put(t, ctx, "mine.txt", "the sandbox's\n")
			onto := w.hostCommits(t, "theirs.txt", "the host's\n")
			request := engine.UpdateRequest{Dir: w.dir, Name: "fix", Rebase: rebase}
			done, err := w.Update(ctx, request)
			if err != nil {
				t.Fatal(err)
			}
			if done.Onto != onto || done.Taken != 1 || done.Changed != 1 || done.Number != 2 || (done.Replayed == 1) != rebase {
				t.Errorf("update: %+v", done)
			}
			if mine, theirs := w.file(t, ctx, "mine.txt"), w.file(t, ctx, "theirs.txt"); mine != "the sandbox's\n" || theirs != "the host's\n" {
				t.Errorf("inside are %q and %q", mine, theirs)
			}
			parents := strings.Fields(gittest.Git(t, w.dir, "rev-list", "--parents", "-n", "1", done.Commit))
			if want := map[bool]int{false: 3, true: 2}[rebase]; len(parents) != want || !slices.Contains(parents, onto) {
				t.Errorf("the commit and its parents: %q; the new base is %s", parents, onto)
			}
			again, err := w.Update(ctx, request)
			if err != nil || again.Number != 0 || again.Commit != done.Commit || again.Changed != 0 {
				t.Errorf("another update: %+v, %v", again, err)
			}
			w.put(t, ctx, "mine.txt", "later\n")
			if _, err := w.Merge(ctx, engine.MergeRequest{Dir: w.dir, Name: "fix", Delete: true}); err != nil {
				t.Error(err)
			}
		})
	}
}

// A conflict leaves everything as it was, unless markers are asked for.
func TestUpdateWithAConflict(t *testing.T) {
	w, ctx := begun(t)
	it := w.put(t, ctx, "README", "the sandbox's\n")
	w.hostCommits(t, "README", "the host's\n")
	request := engine.UpdateRequest{Dir: w.dir, Name: "fix"}
	if _, err := w.Update(ctx, request); fault.KindOf(err) != fault.Conflict || !strings.Contains(fault.HintOf(err), "--conflicts markers") {
		t.Fatalf("a conflict: %v (hint %q)", err, fault.HintOf(err))
	}
	if got := w.file(t, ctx, "README"); got != "the sandbox's\n" || w.one(t).Head != it.Commit {
		t.Errorf("after a refusal README holds %q, and the branch is at %s, not %s", got, w.one(t).Head, it.Commit)
	}
	request.Markers = true
	done, err := w.Update(ctx, request)
	if err != nil || !slices.Equal(done.Conflicts, []string{"README"}) {
		t.Fatalf("with markers: %+v, %v", done, err)
	}
	if got := w.file(t, ctx, "README"); !strings.Contains(got, "<<<<<<<") || !strings.Contains(got, "the host's") {
		t.Errorf("README holds %q", got)
	}
}

// Files follow a branch that others have moved, except those that the sandbox has
// changed meanwhile.
func TestFilesFollowABranchThatWasMoved(t *testing.T) {
	w, ctx := begun(t)
	it := w.put(t, ctx, "a.txt", "one\n")
	branch := w.one(t).Branch
	other := t.TempDir()
	gittest.Git(t, w.dir, "worktree", "add", "-q", "--detach", other, it.Commit)
	gittest.Write(t, other, "a.txt", "two\n")
	gittest.Write(t, other, "b.txt", "new\n")
	gittest.Git(t, other, "rm", "-qf", "README")
	gittest.Git(t, other, "add", ".")
	gittest.Git(t, other, "commit", "-qm", "of another")
	gittest.Git(t, w.dir, "update-ref", "refs/heads/"+branch, gittest.Git(t, other, "rev-parse", "HEAD"))
	done, err := w.Exec(ctx, engine.ExecRequest{Dir: w.dir, Name: "fix", Argv: []string{"true"}})
	if err != nil || !slices.ContainsFunc(done.Notes, func(note string) bool { return strings.Contains(note, "3 files inside follow") }) {
		t.Errorf("notes: %q, %v", done.Notes, err)
	}
	if a, b := w.file(t, ctx, "a.txt"), w.file(t, ctx, "b.txt"); a != "two\n" || b != "new\n" {
		t.Errorf("inside are %q and %q", a, b)
	}
	if err := w.Read(ctx, w.dir, "fix", "README", new(strings.Builder)); fault.KindOf(err) != fault.NotFound {
		t.Errorf("README is still there: %v", err)
	}
}
