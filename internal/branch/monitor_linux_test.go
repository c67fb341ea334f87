package branch_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/litterbox-sandbox/litterbox/internal/branch/branchtest"
	"github.com/litterbox-sandbox/litterbox/internal/git/gittest"
	"github.com/litterbox-sandbox/litterbox/internal/layer"
)

// newMonitored makes a box in which git asks what changed.
func newMonitored(t testing.TB, dir, name string) *branchtest.Box {
	t.Helper()
	program := filepath.Join(t.TempDir(), "monitor")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b := branchtest.NewOn(t, layer.Cache{Dir: filepath.Join(t.TempDir(), "cache"), Monitor: layer.Monitor{Program: func() string { return program }}}, dir, name)
	script := fmt.Sprintf("#!/bin/sh\n%s='%s\n%s' GORACE=atexit_sleep_ms=0 exec '%s'\n", branchtest.MonitorVariable, b.Upper, b.Target, self)
	if err := os.WriteFile(program, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return b
}

// With a monitor git looks at no file that did not change, and at every one
// that did.
func TestMonitorSparesTheFirstStatus(t *testing.T) {
	b := newMonitored(t, branchtest.ManyFiles(t), "fix")
	// In lower case: valid as the monitor says (git-ls-files(1), -f).
	if out := b.Inside("git ls-files -f | cut -c1 | sort -u"); out != "h" {
		t.Fatalf("not every entry is valid: %q", out)
	}
	out := b.Inside(`echo more >> d1/e1/f1; rm README; rm -r tools; chmod +x d2/e2/f2; echo new > d3/new
		rm -r src; mkdir src; echo x > src/other; git status --porcelain`)
	want := strings.Join([]string{
		"D README", " M d1/e1/f1", " M d2/e2/f2", " D src/lib/a.c", " D src/lib/b.c", " D src/main.c", " D tools/run.sh", "?? d3/new", "?? src/other",
	}, "\n")
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(out, "\n")); diff != "" {
		t.Fatal(diff)
	}
}

// A file that the sandbox made itself leaves no trace when it is removed again.
func TestMonitorMissesNoRemoval(t *testing.T) {
	b := newMonitored(t, gittest.Repository(t), "fix")
	out := b.Inside(`mkdir -p own/dir; for f in top src/in own/dir/new; do echo $f > $f; done
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
			b := newMonitored(t, gittest.Repository(t), "fix")
			out := b.Inside("echo new > new; git add new; " + script + "; git status --porcelain >/dev/null; rm new; echo x >> README; git status --porcelain README new")
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
			b := newMonitored(t, gittest.Repository(t), "fix")
			for round := range uint64(len(steps)) {
				s := branchtest.Inside{Layers: b.Layers, Upper: b.Upper, Work: b.Work, Target: b.Target, Seed: 3000 + seed*100 + round,
					Script: both + steps[(seed+round)%uint64(len(steps))] + "\n" + branchtest.GitTree}
				want, _, _ := strings.Cut(s.Run(t), "\n")
				if got := b.ImportNow(); got.Tree != want {
					t.Fatalf("round %d: the trees differ: %s", round, gittest.Git(t, b.Repository.Top, "diff-tree", "-r", want, got.Tree))
				}
			}
		})
	}
}

// About another work tree with the same configuration the monitor knows
// nothing, and says so.
func TestMonitorOfAnotherWorkTree(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	b := newMonitored(t, gittest.Repository(t), "fix")
	out := b.Inside(`git worktree add -q -b side $TMPDIR/side; cd $TMPDIR/side; git status --short; git status --short
		echo more >> README; rm src/main.c; git status --short; cp -r "$OLDPWD" ../copy; cd ../copy; echo x >> docs/one.md; git status --short`)
	if out != "M README\n D src/main.c\n M docs/one.md" {
		t.Fatalf("git status says %q", out)
	}
}

// Mounts over files of the base are seen, though the upper directory shows
// nothing of them.
func TestMonitorSeesMounts(t *testing.T) {
	b := newMonitored(t, gittest.Repository(t), "fix")
	out := b.Inside("git status --short; mount -t tmpfs none src; echo x > src/x; git status --short")
	if out != "D src/lib/a.c\n D src/lib/b.c\n D src/main.c\n?? src/x" {
		t.Fatalf("git status says %q", out)
	}
}
