package branch_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/litterbox-sandbox/litterbox/internal/branch"
	"github.com/litterbox-sandbox/litterbox/internal/branch/branchtest"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git/gittest"
)

func TestLargeFilesAreLeftAlone(t *testing.T) {
	b := branchtest.New(t, gittest.Repository(t), "fix")
	b.Inside("truncate -s 100G giant; truncate -s 80M large; echo small > small")
	q := b.Request()
	q.Limits.FileSize, q.Limits.Holes = 100<<20, 100<<20
	got := b.ImportAs(q)
	if diff := cmp.Diff([]string{`"giant" stays as last committed: it is larger than 104857600 bytes`}, got.Notes); diff != "" {
		t.Fatal(diff)
	}
	if size := b.Show("cat-file", "-s", "fix:large"); size != "83886080" || got.Changed != 2 {
		t.Fatalf("%+v, large is %s", got, size)
	}
	q.Limits.Entries = 3
	_, err := branch.Import(gittest.Context(t), b.Repository, q)
	gittest.Kind(t, err, fault.Denied, true)
}

// Trees of thousands of changed files are made in another way, which must give
// the same result.
func TestManyFilesAtOnce(t *testing.T) {
	dir := gittest.Repository(t)
	b := branchtest.New(t, dir, "fix")
	b.Alone = true       // twice would take long
	plain := t.TempDir() // the same without litterbox: git's own word
	gittest.Git(t, dir, "worktree", "add", "--quiet", "--detach", plain)
	step := func(script string) {
		t.Helper()
		b.Inside(script)
		got := b.ImportNow()
		if out, err := exec.Command("sh", "-c", "cd "+plain+" && "+script).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		gittest.Git(t, plain, "add", "--all")
		if want := gittest.Git(t, plain, "write-tree"); got.Tree != want || len(got.Notes) != 0 {
			t.Fatalf("after %q the tree is %s, want %s; %q\n%s", script, got.Tree, want, got.Notes, gittest.Git(t, plain, "diff", "--stat", got.Tree, want))
		}
	}
	const count = "9000"
	step("mkdir flat deep; seq " + count + " | (cd flat && xargs touch); for i in $(seq 300); do mkdir -p deep/$i/x; echo $i > deep/$i/x/f; done; rm README; ln -s flat another; printf '%s' x > 'flat/ odd\tname'")
	// Now git knows them; each is looked up, changed or deleted.
	step("cd flat && for i in $(seq " + count + "); do echo $i > $i; done; rm 1*; rm -r ../deep/7; echo file > ../deep/7")
	step("rm -r flat; echo file > flat")
	if loose := gittest.Git(t, dir, "count-objects"); len(loose) > 0 && !strings.HasPrefix(loose, "0 ") && len(strings.Fields(loose)[0]) > 2 {
		t.Errorf("left loose: %s", loose)
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(b.State), "bulk-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestLargeFileStorageKeepsTheContent(t *testing.T) {
	dir := gittest.Repository(t)
	gittest.Git(t, dir, "config", "--global", "filter.lfs.clean", "false")
	gittest.Write(t, dir, ".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n")
	gittest.Shell(t, dir, "git add .gitattributes; git commit -qm lfs")
	b := branchtest.New(t, dir, "fix")
	b.Inside("printf content > a.bin")
	b.ImportNow()
	pointer := "version https://git-lfs.github.com/spec/v1\noid sha256:ed7002b439e9ac845f22357d822bac1444730fbdb6016d3ec9432297b9ec9f73\nsize 7"
	if got := b.Show("show", "fix:a.bin"); got != pointer {
		t.Fatalf("pointer %q", got)
	}
	content, err := os.ReadFile(filepath.Join(b.Repository.CommonDir,
		"lfs/objects/ed/70/ed7002b439e9ac845f22357d822bac1444730fbdb6016d3ec9432297b9ec9f73"))
	if err != nil || string(content) != "content" {
		t.Fatalf("%q, %v", content, err)
	}
}
