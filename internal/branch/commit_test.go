package branch_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/litterbox-sandbox/litterbox/internal/branch"
	"github.com/litterbox-sandbox/litterbox/internal/branch/branchtest"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/git/gittest"
	"golang.org/x/sys/unix"
)

func TestEveryIterationIsACommit(t *testing.T) {
	b := branchtest.New(t, gittest.Repository(t), "fix")
	first := b.ImportNow() // nothing changed
	if first.Changed != 0 || !first.Written || first.Tree != b.Repository.HeadTree {
		t.Fatalf("%+v", first)
	}
	b.Inside("echo x > new; rm README; chmod +x src/main.c")
	second := b.ImportNow()
	want := branch.ImportResult{Commit: b.Show("rev-parse", "fix"), Tree: b.Show("rev-parse", "fix^{tree}"), Written: true, Changed: 3,
		Paths: []string{"README", "new", "src/main.c"}}
	if diff := cmp.Diff(want, second); diff != "" {
		t.Fatal(diff)
	}
	if parents := b.Show("log", "--format=%H %P", "-2", "fix"); parents != second.Commit+" "+first.Commit+"\n"+first.Commit+" "+b.Base {
		t.Fatalf("history:\n%s", parents)
	}
	want2 := "Ada <ada@example.com> 1700000000 +0000\nstep\n\ncommand\n\nSandbox: fix\n"
	if got := b.Show("log", "-1", "--format=%an <%ae> %ad%n%B", "--date=raw", "fix"); got != want2 {
		t.Fatalf("message %q", got)
	}
	q := b.Request()
	q.OnlyIfChanged = true
	if got := b.ImportAs(q); got.Written || got.Commit != second.Commit {
		t.Fatalf("%+v", got)
	}
	b.Inside("echo x > new") // the same content, written again
	if got := b.ImportAs(q); got.Written || got.Commit != second.Commit || b.Show("rev-parse", "fix") != second.Commit {
		t.Fatalf("%+v", got)
	}
	if out := b.Show("for-each-ref", "refs/litterbox/present"); out != "" {
		t.Fatalf("left behind: %q", out)
	}
}

// That nothing has changed is found out without a git process.
func TestUnchangedStartsNoGit(t *testing.T) {
	b := branchtest.New(t, gittest.Repository(t), "fix")
	b.Alone = true
	b.Inside("echo x > new")
	first := b.ImportNow()
	q := b.Request()
	q.OnlyIfChanged = true
	b.ImportAs(q) // settings are read once
	t.Setenv("PATH", t.TempDir())
	if got := b.ImportAs(q); got.Written || got.Commit != first.Commit || got.Tree != first.Tree {
		t.Fatalf("%+v", got)
	}
}

func TestPreviewMovesNothing(t *testing.T) {
	b := branchtest.New(t, gittest.Repository(t), "fix")
	b.Inside("echo x > new")
	q := b.Request()
	q.Preview = true
	for range 2 {
		got := b.ImportAs(q)
		if b.Show("show", got.Commit+":new") != "x" || b.Show("rev-parse", "fix") != b.Base {
			t.Fatalf("%+v", got)
		}
	}
	if _, err := os.Stat(b.State); err == nil {
		t.Fatal("the preview was recorded")
	}
	if out := b.Show("for-each-ref", "refs/litterbox/present"); out != "" {
		t.Fatalf("left behind: %q", out)
	}
	if got := b.ImportNow(); got.Changed != 1 {
		t.Fatalf("%+v", got)
	}
}

// The human's commits to the branch meanwhile are not undone by older versions
// of files in the sandbox.
func TestForeignCommitsStay(t *testing.T) {
	b := branchtest.New(t, gittest.Repository(t), "fix")
	b.Inside("echo x > new")
	b.ImportNow()
	linked := filepath.Join(t.TempDir(), "linked")
	b.Show("worktree", "add", "-q", linked, "fix")
	gittest.Write(t, linked, "src/main.c", "human\n")
	gittest.Write(t, linked, "human", "human\n")
	gittest.Shell(t, linked, "git rm -q docs/one.md; git add -A; git commit -qm human")
	b.Inside("touch src/main.c docs/one.md; echo y > new")
	got := b.ImportNow()
	if got.Changed != 1 || len(got.Notes) != 1 || !strings.Contains(got.Notes[0], linked) {
		t.Fatalf("%+v", got)
	}
	for i := range 3 {
		if b.Show("show", "fix:src/main.c") != "human" || b.Show("show", "fix:human") != "human" || b.Show("ls-tree", "fix", "docs/") != "" {
			t.Fatalf("round %d: the human's commit was undone:\n%s", i, b.Show("ls-tree", "-r", "fix"))
		}
		b.Inside("echo more >> new; touch README src/main.c")
		b.ImportNow()
	}
	b.Inside("echo agent > src/main.c") // now it means it
	if b.ImportNow(); b.Show("show", "fix:src/main.c") != "agent" {
		t.Fatal("the agent's change is missing")
	}
}

func TestImportNamesALostBranch(t *testing.T) {
	b := branchtest.New(t, gittest.Repository(t), "fix")
	b.ImportNow()
	b.Show("branch", "-D", "fix")
	_, err := branch.Import(gittest.Context(t), b.Repository, b.Request())
	gittest.Kind(t, err, fault.NotFound, true)
	if found, _ := filepath.Glob(filepath.Join(b.Repository.CommonDir, "fast_import_crash_*")); len(found) != 0 {
		t.Fatalf("left behind: %q", found)
	}
}

// A crash between the branch and the delta is completed by the next import;
// one before the branch moved is as if it had not begun.
func TestImportIsCompletedAfterACrash(t *testing.T) {
	b := branchtest.New(t, gittest.Repository(t), "fix")
	b.ImportNow()
	before, err := os.ReadFile(b.State)
	if err != nil {
		t.Fatal(err)
	}
	b.Inside("git config user.name A; git config user.email a@b; echo x > x; git add x; git commit -qm inner")
	q := b.Request()
	q.Agent = receive(b, "")
	result := b.ImportAs(q)
	after, err := os.ReadFile(b.State)
	if err != nil {
		t.Fatal(err)
	}
	crash := func() {
		t.Helper()
		if err := errors.Join(os.WriteFile(b.State, before, 0o600), os.WriteFile(b.State+".next", after, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	crash()
	if head, err := branch.InnerHead(gittest.Context(t), b.Repository, b.State, "fix"); err != nil || head != q.Agent.Head {
		t.Fatalf("taken %q, want %q (%v)", head, q.Agent.Head, err)
	}
	b.Show("update-ref", "refs/heads/fix", result.Commit+"~2") // as if it had not moved
	crash()
	if head, err := branch.InnerHead(gittest.Context(t), b.Repository, b.State, "fix"); err != nil || head != "" {
		t.Fatalf("taken %q, want nothing (%v)", head, err)
	}
}

func TestWhatGitCannotHoldStaysOut(t *testing.T) {
	b := branchtest.New(t, gittest.Repository(t), "fix")
	zwnj := ".g\u200cit"
	b.Inside(`
		mkfifo pipe ignored.o; mkdir sub; mkfifo sub/pipe
		git init -q nested && echo x > nested/file
		mkdir wt && echo 'gitdir: /somewhere/.git/worktrees/wt' > wt/.git && echo x > wt/file
		mkdir away && echo 'gitdir: /somewhere/.git/modules/away' > away/.git && echo x > away/file
		mkdir -p trap/.GIT trap/git~1 '` + zwnj + `' && echo x > trap/.GIT/config && echo x > trap/git~1/x && echo x > '` + zwnj + `/x'
		echo fine > trap/fine; mkdir src/.git; echo x > src/.git/config; echo y > src/new
		ln -s README .gitmodules
		rm README; mkfifo README`)
	got := b.ImportNow()
	want := []string{
		`".gitmodules" stays out: git refuses a symbolic link of that name`,
		`".g\u200cit" stays out: a file system may take its name for .git`,
		`"README" stays out: git cannot hold a socket, pipe or device`,
		`"away" stays out: it is a separate git repository; it would come out without its .git`,
		`"nested" stays out: it is a separate git repository; it would come out without its .git`,
		`"pipe" stays out: git cannot hold a socket, pipe or device`,
		`"src/.git" stays out: a file system may take its name for .git`,
		`"sub/pipe" stays out: git cannot hold a socket, pipe or device`,
		`"trap/.GIT" stays out: a file system may take its name for .git`,
		`"trap/git~1" stays out: a file system may take its name for .git`,
		`"wt" stays out: it is a worktree of git; what is committed there is on a branch that litterbox branches lists`,
	}
	if diff := cmp.Diff(want, got.Notes); diff != "" {
		t.Error(diff)
	}
	// The pipes hold nothing that could be lost.
	if diff := cmp.Diff(branch.Left{Count: 8, First: ".gitmodules"}, got.Left); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff("D\tREADME\nA\tsrc/new\nA\ttrap/fine", b.Show("diff", "--name-status", b.Base, "fix")); diff != "" {
		t.Error(diff)
	}
}

// A sandbox that swaps directories for links while it is read gets nothing
// from outside into a commit, and cannot break one.
func TestImportWhileTheSandboxFights(t *testing.T) {
	b := branchtest.New(t, gittest.Repository(t), "fix")
	outside := t.TempDir()
	gittest.Write(t, outside, "secret", "the secret")
	gittest.Write(t, b.Upper, "a/b/secret", "mine")
	gittest.Write(t, b.Upper, "grow", "x")
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			// The sandbox may do this at any moment; each step may find the one before undone.
			_ = os.Rename(filepath.Join(b.Upper, "a/b"), filepath.Join(b.Upper, "a/c"))
			_ = os.Symlink(outside, filepath.Join(b.Upper, "a/b"))
			_ = os.Remove(filepath.Join(b.Upper, "a/b"))
			_ = os.Rename(filepath.Join(b.Upper, "a/c"), filepath.Join(b.Upper, "a/b"))
			_ = os.Remove(filepath.Join(b.Upper, "grow"))
			_ = os.WriteFile(filepath.Join(b.Upper, "grow"), bytes.Repeat([]byte("x"), n%5000), 0o644)
			_ = os.Remove(filepath.Join(b.Upper, "swap"))
			_ = os.Symlink(filepath.Join(outside, "secret"), filepath.Join(b.Upper, "swap"))
			_ = os.Remove(filepath.Join(b.Upper, "swap"))
			_ = unix.Mkfifo(filepath.Join(b.Upper, "swap"), 0o644)
			_ = os.Remove(filepath.Join(b.Upper, "swap"))
			_ = os.WriteFile(filepath.Join(b.Upper, "swap"), []byte("plain"), 0o644)
		}
	}()
	b.Moving = true
	for range 40 {
		b.ImportNow()
	}
	close(stop)
	<-done
	if out := b.Show("log", "-p", "--all", "--text"); strings.Contains(out, "the secret") {
		t.Fatal("the secret is in a commit")
	}
	b.Show("fsck", "--full", "--strict")
	gittest.Write(t, b.Upper, "grow", "quiet")
	b.ImportNow()
	if b.Show("show", "fix:grow") != "quiet" || b.Show("show", "fix:swap") != "plain" {
		t.Fatal("the last state is missing")
	}
}

func TestUnreadableFilesStayAsTheyWere(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root reads everything")
	}
	b := branchtest.New(t, gittest.Repository(t), "fix")
	b.Inside("echo 1 > known; mkdir dir; echo 1 > dir/known")
	b.ImportNow()
	b.Inside("echo 2 > known; chmod 0 known; chmod 0 dir; echo 2 > README; chmod 0 README; echo x > secret; chmod 0 secret")
	got := b.ImportNow()
	if got.Changed != 0 || len(got.Notes) != 4 {
		t.Fatalf("%+v", got)
	}
	b.Inside("chmod 755 dir") // so that it can be removed
}

// The reader refuses what it does not understand instead of guessing.
func TestUnknownOverlayAttributesAreRefused(t *testing.T) {
	for _, name := range []string{"redirect", "metacopy", "whiteout", "whiteouts", "future"} {
		b := branchtest.New(t, gittest.Repository(t), "fix")
		b.Inside("echo x > README; mkdir d")
		path := filepath.Join(b.Upper, "d")
		if name == "metacopy" {
			path = filepath.Join(b.Upper, "README")
		}
		if err := unix.Setxattr(path, "user.overlay."+name, []byte("x"), 0); err != nil {
			t.Fatal(err)
		}
		_, err := branch.Import(gittest.Context(t), b.Repository, b.Request())
		gittest.Kind(t, err, fault.Unsupported, true)
	}
}

// The upper directory may be changed by a hostile sandbox while it is read:
// no link in it is ever followed.
func TestLinksAreNeverFollowed(t *testing.T) {
	b := branchtest.New(t, gittest.Repository(t), "fix")
	outside := t.TempDir()
	gittest.Write(t, outside, "secret", "secret")
	gittest.Write(t, outside, ".gitignore", "*\n")
	b.Inside("rm -r src docs; ln -s " + outside + " src; ln -s " + outside + "/secret docs; rm .gitignore; ln -s " + outside + "/.gitignore .gitignore; echo x > seen")
	b.ImportNow()
	want := "120000 .gitignore\n120000 docs\n120000 link\n100644 seen\n120000 src"
	var got []string
	for line := range strings.Lines(b.Show("ls-tree", "fix")) {
		f := strings.Fields(line)
		if f[3] != "README" && f[3] != "tools" {
			got = append(got, f[0]+" "+f[3])
		}
	}
	if diff := cmp.Diff(want, strings.Join(got, "\n")); diff != "" {
		t.Fatal(diff)
	}
}

func TestSubmodulesStayAsTheyAre(t *testing.T) {
	dir := gittest.Repository(t)
	sub := t.TempDir()
	gittest.Shell(t, sub, "git init -q; echo x > x; git add x; git commit -qm x")
	gittest.Git(t, dir, "-c", "protocol.file.allow=always", "submodule", "add", "-q", sub, "vendor/sub")
	gittest.Git(t, dir, "commit", "-qm", "submodule")
	b := branchtest.New(t, dir, "fix")
	b.Inside("echo y > vendor/sub/y; echo z > vendor/z")
	if got := b.ImportNow(); got.Changed != 1 {
		t.Fatalf("%+v\n%s", got, b.Show("diff", "--raw", b.Base, "fix"))
	}
	b.Inside("rm -r vendor/sub")
	if got := b.ImportNow(); got.Changed != 1 || b.Show("ls-tree", "-r", "--name-only", "fix", "vendor") != "vendor/z" {
		t.Fatalf("%+v", got)
	}
}

// Many commits leave few packs, and every object stays.
func TestConsolidate(t *testing.T) {
	b := branchtest.New(t, gittest.Repository(t), "fix")
	b.Alone = true
	for i := range 170 {
		gittest.Write(t, b.Upper, "counter", strings.Repeat("x", i))
		if result := b.ImportNow(); result.Packing == git.PackingDue {
			q, swaps := b.Consolidation(), 0
			q.Lock = func(_ context.Context, name string) (func(), error) {
				if name == "commit" {
					swaps++
				}
				return func() {}, nil
			}
			if err := b.Repository.Consolidate(gittest.Context(t), q); err != nil {
				t.Fatal(err)
			}
			// A git that reads meanwhile looks for new packs once, so they replace
			// others once, even where joined packs are joined again.
			if swaps != 1 {
				t.Fatalf("after %d commits packs took the place of others %d times", i+1, swaps)
			}
		}
	}
	packs, err := filepath.Glob(filepath.Join(b.Repository.CommonDir, "objects/pack/*.pack"))
	if err != nil || len(packs) > 12 {
		t.Fatalf("%d packs, %v", len(packs), err)
	}
	b.Show("fsck", "--full", "--strict")
	if n := b.Show("rev-list", "--count", "fix", "^main"); n != "170" {
		t.Fatalf("%s commits", n)
	}
	b.Show("gc", "-q") // the user's own
	b.Show("fsck", "--full", "--strict")
	b.ImportNow()
	if err := b.Repository.Consolidate(gittest.Context(t), b.Consolidation()); err != nil {
		t.Fatal(err)
	}
	b.Show("fsck", "--full", "--strict")
}
