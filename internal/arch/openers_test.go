package arch_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// openers: do not change it to fix a build.
//
// These packages of the host have paths at hand that a sandbox can write: its
// workspace, its home, its logs, the git directory inside. Only package hostile
// opens, walks and removes such a path, because it may be a link that leads out,
// or a pipe that makes the opener wait for ever. Each file below was looked at:
// what it opens by path is something else, of the kind that heads the lines.
const openers = `
# Records of litterbox's own, beside the sandbox's directories: never mounted
# in a sandbox with the right to write.
git/consolidate.go: os.ReadDir os.ReadFile os.WriteFile
branch/delta.go: os.OpenFile os.ReadFile
landing/follow.go: os.ReadDir os.ReadFile
git/memory.go: os.ReadFile
branch/behind.go: os.RemoveAll
branch/sharequarantine.go: os.ReadDir os.ReadFile os.WriteFile
branch/packbase.go: os.Open os.OpenFile
engine/innerbase.go: os.Open
engine/history.go: os.OpenFile
branch/cameout.go: os.ReadFile os.WriteFile
branch/receive.go: os.OpenFile os.ReadFile os.WriteFile
branch/refused.go: filepath.Glob os.ReadFile os.WriteFile
driver/namespace/stop_linux.go: os.ReadFile os.WriteFile
engine/agent.go: os.WriteFile
engine/agentclients.go: os.ReadFile
engine/agentdrive.go: os.OpenFile
engine/agentfollow.go: os.Open
engine/agentinstall.go: os.RemoveAll
engine/agentown.go: os.ReadFile os.WriteFile
engine/approved.go: os.ReadFile os.WriteFile
engine/caches.go: os.ReadFile
engine/commandlog.go: os.OpenFile
engine/cost.go: os.WriteFile
engine/disk.go: filepath.Glob
keeper/launch/launch.go: os.OpenFile
engine/leftovers.go: os.ReadDir
engine/trashfar.go: os.ReadDir
engine/lefttemp.go: os.ReadDir
engine/limits.go: os.WriteFile
engine/mend.go: os.ReadFile
engine/network.go: os.WriteFile process.ReadAtOnce
engine/prune.go: os.ReadDir
engine/pruneuserland.go: filepath.Glob os.ReadDir
engine/remove.go: os.ReadDir
engine/environmentaccount.go: os.ReadFile os.WriteFile
engine/environmentlist.go: os.ReadDir
live/checkout.go: os.ReadFile
engine/snapshot.go: os.ReadFile os.WriteFile
engine/snapshotlist.go: filepath.Glob
engine/scratch.go: os.Open os.RemoveAll
engine/solve.go: os.RemoveAll
engine/frozen.go: os.ReadDir
engine/golden.go: os.ReadDir os.ReadFile os.WriteFile
engine/goldenfar.go: os.ReadFile os.WriteFile
engine/goldenlist.go: os.Open
engine/goldenlog.go: os.OpenFile
engine/running.go: os.ReadFile os.WriteFile
keeper/cost.go: os.ReadFile
engine/sshagent.go: os.ReadFile os.WriteFile
keeper/sshagent.go: os.ReadFile
engine/installinside.go: os.WriteFile
keeper/installs.go: os.ReadFile
keeper/lend.go: os.ReadFile
keeper/limits.go: process.ReadAtOnce
keeper/logins.go: os.WriteFile
keeper/network.go: os.ReadFile
keeper/secrets.go: os.ReadFile

# The human's repository and checkout.
landing/checkout.go: OpenRoot os.OpenRoot
engine/sync.go: OpenRoot os.OpenRoot
landing/aside.go: os.Open os.ReadDir os.RemoveAll
git/borrowed.go: os.ReadFile
git/clean.go: os.ReadDir os.ReadFile
git/writeback_linux.go: os.Open
git/deadpacks.go: filepath.Glob os.Open
git/index.go: os.OpenFile os.ReadFile
git/indexmerge.go: os.ReadFile
git/mergetree.go: os.ReadFile
landing/hooks.go: os.Open os.ReadDir
landing/layout.go: filepath.WalkDir
landing/merge.go: os.ReadFile
landing/missing.go: os.OpenRoot
landing/obstacles.go: os.OpenRoot
branch/milestone.go: filepath.Glob os.ReadFile
layer/module.go: os.ReadFile os.WriteFile
landing/oldworktree.go: OpenRoot os.RemoveAll
landing/pointer.go: OpenRoot os.OpenRoot
landing/preview.go: os.ReadFile os.RemoveAll os.WriteFile
git/patience_linux.go: os.Open os.ReadDir os.ReadFile
git/quickopen.go: os.Open os.ReadFile
git/repository.go: os.ReadFile
git/settings.go: os.Open
git/vanish.go: filepath.Glob os.ReadFile
engine/bring.go: os.OpenRoot
engine/catchup.go: os.OpenRoot

# Layers, which sandboxes can only read, and what is built beside them.
branch/bulk.go: filepath.WalkDir os.RemoveAll
layer/cache.go: os.OpenFile os.ReadDir os.ReadFile os.RemoveAll os.WriteFile
layer/checkout.go: filepath.WalkDir os.RemoveAll os.WriteFile
layer/deltalayer.go: filepath.Glob os.Open os.ReadDir
layer/entries.go: os.ReadDir os.RemoveAll
layer/gitlayer.go: os.ReadFile os.WriteFile
layer/history.go: filepath.Glob os.Open os.OpenFile os.ReadDir os.ReadFile os.RemoveAll
layer/modulelayer.go: os.RemoveAll
branch/modulereceive.go: os.RemoveAll

# A workspace, written before the sandbox first starts.
layer/fill_linux.go: os.OpenFile os.ReadFile
workspace/local/prepare.go: os.WriteFile

# The kernel's files, and those of the machine.
driver/landlock/acquire_linux.go: os.OpenFile
driver/landlock/attach_linux.go: os.ReadDir os.ReadFile
driver/namespace/acquire_linux.go: os.OpenFile
driver/namespace/carriage_linux.go: os.OpenFile os.ReadFile os.RemoveAll os.WriteFile
driver/namespace/doomed_linux.go: os.ReadFile
driver/namespace/kernelmemory_linux.go: os.ReadDir os.ReadFile
driver/namespace/logind_linux.go: filepath.Glob os.ReadFile
driver/namespace/metrics_linux.go: os.ReadFile
driver/namespace/prepare_linux.go: os.ReadDir os.ReadFile os.WriteFile
driver/namespace/refusal_linux.go: os.ReadFile
driver/namespace/strays_linux.go: os.ReadDir os.ReadFile
driver/namespace/tier_linux.go: os.OpenFile os.ReadFile
engine/leftmounts_linux.go: os.ReadFile
engine/extraroots.go: os.ReadFile
engine/roots.go: os.ReadFile os.WriteFile
engine/secrets.go: os.WriteFile
engine/toolchains.go: os.ReadDir

# What the human named on the command line, or in their own configuration.
engine/shellrc.go: os.OpenFile
engine/files.go: filepath.WalkDir os.Open os.OpenRoot
engine/initialize.go: os.Open

# In the sandbox's directories, looked at: the walk of the keeper opens
# directories only, by descriptors, without waiting; the journal's writing end
# runs inside.
keeper/disk_linux.go: unix.Open unix.Openat
service/journal/journal.go: os.OpenRoot
`

// touching are the packages that the list is about.
var touching = []string{"branch", "git", "landing", "layer", "live", "driver/landlock", "driver/namespace", "engine", "keeper", "keeper/launch", "service/journal", "workspace/local"}

// opening lists the ways to open, walk or remove by path. Methods of an os.Root
// are judged by its origin, except for the one that opens another.
var opening = map[string][]string{
	"os":       {"Open", "OpenFile", "OpenRoot", "OpenInRoot", "ReadFile", "ReadDir", "RemoveAll", "DirFS", "Create", "WriteFile", "CopyFS"},
	"filepath": {"Walk", "WalkDir", "Glob"},
	"unix":     {"Open", "Openat", "Openat2", "Creat"},
	"syscall":  {"Open", "Openat", "Creat"},
	"process":  {"ReadAtOnce"},
	"ioutil":   {"ReadFile", "ReadDir", "WriteFile"},
}

func TestOpeners(t *testing.T) {
	want, err := parseBlock(openers)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for _, pkg := range touching {
		dir := filepath.Join(root(t), "internal", pkg)
		found, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(found) == 0 {
			t.Fatalf("no source in %s: %v", dir, err)
		}
		for _, file := range found {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			if calls := openings(parsed); len(calls) > 0 {
				got[pkg+"/"+filepath.Base(file)] = calls
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what opens by path (- reviewed, + found). Use package hostile for what a sandbox can write; for anything else look at it and add a line:\n%s", diff)
	}
}

// openings lists which of those a file calls or mentions.
func openings(file *ast.File) []string {
	var found []string
	ast.Inspect(file, func(node ast.Node) bool {
		selector, ok := node.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		name := selector.Sel.Name
		if pkg, ok := selector.X.(*ast.Ident); ok && slices.Contains(opening[pkg.Name], name) {
			name = pkg.Name + "." + name
		} else if name != "OpenRoot" {
			return true
		}
		if !slices.Contains(found, name) {
			found = append(found, name)
		}
		return true
	})
	slices.Sort(found)
	return found
}

// The control: the ways in which files were opened before are found.
func TestOpenersSees(t *testing.T) {
	const source = `package p
func f() { r, _ := os.OpenRoot(dir); r.OpenRoot("x"); filepath.WalkDir(d, f); unix.Openat(a, b, c, d); g(os.ReadFile); os.Lstat(x); r.Open(y) }`
	parsed, err := parser.ParseFile(token.NewFileSet(), "p.go", source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"OpenRoot", "filepath.WalkDir", "os.OpenRoot", "os.ReadFile", "unix.Openat"}
	if diff := cmp.Diff(want, openings(parsed)); diff != "" {
		t.Errorf("(- want, + got):\n%s", diff)
	}
}
