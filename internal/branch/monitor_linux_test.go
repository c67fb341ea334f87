package branch_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/branch"
	"github.com/litterbox-sandbox/litterbox/internal/fsmonitor"
)

// monitor answers git as a sandbox's does.
func monitor(changes, workspace string) {
	fmt.Print("token\x00")
	for _, path := range fsmonitor.List(fsmonitor.Place{Changes: changes, Workspace: workspace, Mounts: "/proc/self/mountinfo"}) {
		fmt.Print(path, "\x00")
	}
}

// newMonitored makes a box in which git asks what changed.
func newMonitored(t testing.TB, dir, name string) *box {
	t.Helper()
	program := filepath.Join(t.TempDir(), "monitor")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b := newBoxOn(t, branch.Cache{Dir: filepath.Join(t.TempDir(), "cache"), Monitor: branch.Monitor{Program: func() string { return program }}}, dir, name)
	script := fmt.Sprintf("#!/bin/sh\n%s='%s\n%s' GORACE=atexit_sleep_ms=0 exec '%s'\n", monitorVariable, b.upper, b.target, self)
	if err := os.WriteFile(program, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return b
}

// With a monitor git looks at no file that did not change, and at every one
// that did.
func TestMonitorSparesTheFirstStatus(t *testing.T) {
	b := newMonitored(t, manyFiles(t), "fix")
	// In lower case: valid as the monitor says (git-ls-files(1), -f).
	if out := b.inside("git ls-files -f | cut -c1 | sort -u"); out != "h" {
		t.Fatalf("not every entry is valid: %q", out)
	}
	out := b.inside(`echo more >> d1/e1/f1; rm README; rm -r tools; chmod +x d2/e2/f2; echo new > d3/new
		rm -r src; mkdir src; echo x > src/other; git status --porcelain`)
	want := strings.Join([]string{
		"D README", " M d1/e1/f1", " M d2/e2/f2", " D src/lib/a.c", " D src/lib/b.c", " D src/main.c", " D tools/run.sh", "?? d3/new", "?? src/other",
	}, "\n")
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(out, "\n")); diff != "" {
		t.Fatal(diff)
	}
}

// What the sandbox made itself leaves no trace when it is removed again.
func TestMonitorMissesNoRemoval(t *testing.T) {
	b := newMonitored(t, repository(t), "fix")
	out := b.inside(`mkdir -p own/dir; for f in top src/in own/dir/new; do echo $f > $f; done
		git add -A; git commit -qm own; git stash -q 2>/dev/null || true
		git checkout -q -b side; echo later > later; git add later; git commit -qm later
		git checkout -q HEAD~1; git checkout -q side; git status --porcelain; touch README; git status --porcelain
		rm top src/in later; rm -r own; git status --porcelain`)
	want := " D later\n D own/dir/new\n D src/in\n D top"
	if diff := cmp.Diff(strings.TrimSpace(want), out); diff != "" {
		t.Fatal(diff)
	}
}

// In a kind of index that the monitor does not read, git looks at everything.
func TestMonitorOfOtherIndexes(t *testing.T) {
	for name, script := range map[string]string{
		"version 4": "git update-index --index-version 4",
		"split":     "git update-index --split-index",
		"elsewhere": "cp .git/index .git/other; export GIT_INDEX_FILE=.git/other",
		"sparse":    "git sparse-checkout set --cone --sparse-index docs >/dev/null 2>&1; git sparse-checkout disable >/dev/null 2>&1",
		"no list":   "rm .git/litterbox-base",
		"intent":    "echo x > intent; git add -N intent",
	} {
		t.Run(name, func(t *testing.T) {
			b := newMonitored(t, repository(t), "fix")
			out := b.inside("echo new > new; git add new; " + script + "; git status --porcelain >/dev/null; rm new; echo x >> README; git status --porcelain README new")
			if out != "M README\nAD new" {
				t.Fatalf("git status says %q", out)
			}
		})
	}
}

// Whatever is done, by hand or by git, git with the monitor sees what git
// without it sees, and Import makes the same tree.
func TestMonitorMissesNothing(t *testing.T) {
	const both = `
		compare() {
			git status --porcelain > $TMPDIR/with
			GIT_OPTIONAL_LOCKS=0 git -c core.fsmonitor=false status --porcelain > $TMPDIR/without
			diff $TMPDIR/without $TMPDIR/with || { echo "after $1: the monitor misses something" >&2; exit 1; }
		}
		compare work
		`
	steps := []string{
		"", "git add -A; compare add", "git stash -q -u >/dev/null 2>&1 || true; compare stash; git stash pop -q >/dev/null 2>&1 || true; compare pop",
		"git add -A; git commit -qm inner >/dev/null 2>&1 || true; compare commit", "git reset -q --hard HEAD~1 2>/dev/null || true; compare reset",
		"git checkout -q -- . ; compare checkout",
	}
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Setenv("TMPDIR", t.TempDir())
			b := newMonitored(t, repository(t), "fix")
			for round := range uint64(len(steps)) {
				s := inside{Layers: b.layers, Upper: b.upper, Work: b.work, Target: b.target, Seed: 3000 + seed*100 + round,
					Script: both + steps[(seed+round)%uint64(len(steps))] + "\n" + gitTree}
				want, _, _ := strings.Cut(s.run(t), "\n")
				if got := b.importNow(); got.Tree != want {
					t.Fatalf("round %d: the trees differ: %s", round, git(t, b.r.Top, "diff-tree", "-r", want, got.Tree))
				}
			}
		})
	}
}

// About another work tree with the same configuration the monitor knows
// nothing, and says so.
func TestMonitorOfAnotherWorkTree(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	b := newMonitored(t, repository(t), "fix")
	out := b.inside(`git worktree add -q -b side $TMPDIR/side; cd $TMPDIR/side; git status --short; git status --short
		echo more >> README; rm src/main.c; git status --short; cp -r "$OLDPWD" ../copy; cd ../copy; echo x >> docs/one.md; git status --short`)
	if out != "M README\n D src/main.c\n M docs/one.md" {
		t.Fatalf("git status says %q", out)
	}
}

// What is mounted over files of the base is seen, though the upper directory
// has nothing of it.
func TestMonitorSeesMounts(t *testing.T) {
	b := newMonitored(t, repository(t), "fix")
	out := b.inside("git status --short; mount -t tmpfs none src; echo x > src/x; git status --short")
	if out != "D src/lib/a.c\n D src/lib/b.c\n D src/main.c\n?? src/x" {
		t.Fatalf("git status says %q", out)
	}
}
