package git_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/git/gittest"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

func TestOpenFindsTheRepositoryFromAnywhereInIt(t *testing.T) {
	dir := gittest.Repository(t)
	gittest.Git(t, dir, "worktree", "add", "-q", "-b", "side", "../linked")
	gittest.Git(t, dir, "worktree", "add", "-q", "--detach", "../loose")
	linked, loose := filepath.Join(dir, "../linked"), filepath.Join(dir, "../loose")
	common, head := filepath.Join(dir, ".git"), gittest.Git(t, dir, "rev-parse", "HEAD")
	for _, c := range []struct {
		from string
		want git.Location
		ref  string
	}{
		{dir, git.Location{Top: dir, GitDir: common, CommonDir: common}, "refs/heads/main"},
		{filepath.Join(dir, "src/lib"), git.Location{Top: dir, GitDir: common, CommonDir: common}, "refs/heads/main"},
		{linked, git.Location{Top: linked, GitDir: common + "/worktrees/linked", CommonDir: common}, "refs/heads/side"},
		{loose, git.Location{Top: loose, GitDir: common + "/worktrees/loose", CommonDir: common}, ""},
	} {
		r := gittest.Open(t, c.from)
		if r.Location != c.want || r.HeadRef != c.ref || r.Head != head || r.ObjectFormat != "sha1" {
			t.Errorf("from %q: %+v %q %q", c.from, r.Location, r.HeadRef, r.Head)
		}
		if found, ok := git.Locate(c.from); !ok || found != c.want {
			t.Errorf("Locate(%q) = %+v, %v", c.from, found, ok)
		}
	}
}

func TestOpenNamesWhatIsWrong(t *testing.T) {
	gittest.Home(t)
	empty, bare, unborn := t.TempDir(), t.TempDir(), t.TempDir()
	gittest.Git(t, bare, "init", "-q", "--bare")
	gittest.Git(t, unborn, "init", "-q")
	for dir, want := range map[string]fault.Kind{
		empty: fault.NotFound, bare: fault.Invalid, unborn: fault.Invalid, filepath.Join(unborn, ".git"): fault.Invalid,
	} {
		_, err := git.Open(gittest.Context(t), dir)
		gittest.Kind(t, err, want, true)
	}
	t.Setenv("PATH", empty)
	_, err := git.Open(gittest.Context(t), unborn)
	gittest.Kind(t, err, fault.Unavailable, true)
}

// A hook of the user's may start us with git's own variables set.
func TestOpenIsNotMisledByGitVariables(t *testing.T) {
	dir := gittest.Repository(t)
	t.Setenv("GIT_DIR", filepath.Join(t.TempDir(), "elsewhere"))
	t.Setenv("GIT_INDEX_FILE", filepath.Join(t.TempDir(), "index"))
	if r := gittest.Open(t, dir); r.Top != dir {
		t.Fatalf("found %q", r.Top)
	}
}

func TestBranches(t *testing.T) {
	r := gittest.Open(t, gittest.Repository(t))
	ctx := gittest.Context(t)
	if err := r.CreateBranch(ctx, "fix", r.Head, "id1"); err != nil {
		t.Fatal(err)
	}
	tip, err := r.Tip(ctx, "fix")
	if err != nil || tip != r.Head {
		t.Fatalf("%q, %v", tip, err)
	}
	if got := gittest.Git(t, r.Top, "rev-parse", "refs/litterbox/keep/id1"); got != r.Head {
		t.Fatalf("pinned %q", got)
	}
	later := gittest.Git(t, r.Top, "commit-tree", "-p", "HEAD", "-m", "later", "HEAD^{tree}")
	if err := r.CreateBranchFrom(ctx, "forked", later, "id3", r.Head); err != nil {
		t.Fatal(err)
	}
	if got := gittest.Git(t, r.Top, "rev-parse", "refs/litterbox/keep/id3", "forked"); got != r.Head+"\n"+later {
		t.Fatalf("pinned %q", got)
	}
	gittest.Kind(t, r.CreateBranch(ctx, "fix", r.Head, "id2"), fault.AlreadyExists, false)
	conflict := r.CreateBranch(ctx, "fix/x", r.Head, "id2")
	gittest.Kind(t, conflict, fault.Conflict, false)
	if text := conflict.Error(); !strings.Contains(text, `"fix/x"`) || !strings.Contains(text, `"fix"`) {
		t.Fatalf("both names are missing in %q", text)
	}
	for _, bad := range []string{"", "-x", "a..b", "a b", "a.lock", "/a", "a/", ".a", "a/.b", "a\x01", "@", "a@{b", "HEAD", "a\\b", "a:b"} {
		gittest.Kind(t, r.CreateBranch(ctx, bad, r.Head, "id2"), fault.Invalid, true)
	}
	if out := gittest.Git(t, r.Top, "for-each-ref", "refs/litterbox/keep/id2"); out != "" {
		t.Fatalf("a refused branch left %q", out)
	}
	_, err = r.Tip(ctx, "none")
	gittest.Kind(t, err, fault.NotFound, true)
	for range 2 { // twice is safe
		if err := r.Unpin(ctx, "id1"); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Pin(ctx, "id1", r.Head); err != nil {
		t.Fatal(err)
	}
}

func TestResolve(t *testing.T) {
	r := gittest.Open(t, gittest.Repository(t))
	gittest.Git(t, r.Top, "tag", "-a", "-m", "x", "v1")
	for _, rev := range []string{"HEAD", "main", "v1", "@", r.Head[:9], ":/first"} {
		commit, tree, err := r.Resolve(gittest.Context(t), rev)
		if err != nil || commit != r.Head || tree != r.HeadTree {
			t.Errorf("%q: %q %q %v", rev, commit, tree, err)
		}
	}
	for _, rev := range []string{"nothing", "--all", "HEAD:README", r.Head[:3] + "x"} {
		_, _, err := r.Resolve(gittest.Context(t), rev)
		gittest.Kind(t, err, fault.NotFound, true)
	}
	_, _, err := r.Resolve(gittest.Context(t), "HEAD\nHEAD")
	gittest.Kind(t, err, fault.Invalid, false)
}

func TestIdentity(t *testing.T) {
	dir := gittest.Repository(t)
	got, err := gittest.Open(t, dir).Identity(gittest.Context(t))
	if diff := cmp.Diff(sandbox.Identity{Name: "Ada", Email: "ada@example.com"}, got); err != nil || diff != "" {
		t.Fatal(diff, err)
	}
	gittest.Write(t, os.Getenv("HOME"), ".gitconfig", "[user]\n\tuseConfigOnly = true\n")
	_, err = gittest.Open(t, dir).Identity(gittest.Context(t))
	gittest.Kind(t, err, fault.Invalid, true)
}

func TestDirty(t *testing.T) {
	r := gittest.Open(t, gittest.Repository(t))
	check := func(want bool) {
		t.Helper()
		if got, err := r.Dirty(gittest.Context(t)); err != nil || got != want {
			t.Fatalf("%v, %v", got, err)
		}
	}
	check(false)
	gittest.Write(t, r.Top, "new", "x")
	check(true)
	if err := os.Remove(filepath.Join(r.Top, "new")); err != nil {
		t.Fatal(err)
	}
	gittest.Write(t, r.Top, "ignored.o", "x")
	check(false)
	gittest.Write(t, r.Top, "README", "changed")
	check(true)
}
