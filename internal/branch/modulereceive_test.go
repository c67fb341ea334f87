package branch_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/branch"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/git/gittest"
	"github.com/litterbox-sandbox/litterbox/internal/layer"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// A submodule's pack is checked like the repository's own: refused objects
// never reach the host's, and no hook of the host runs.
func TestReceiveModule(t *testing.T) {
	gittest.Home(t)
	dir := t.TempDir()
	gittest.Shell(t, dir, `git init -q lib; cd lib; echo one >file; git add .; git commit -qm one; cd ..
		git init -q top; cd top; git -c protocol.file.allow=always submodule --quiet add --name lib ../lib vendor/lib; git add .; git commit -qm top`)
	top := filepath.Join(dir, "top")
	r := gittest.Open(t, top)
	cache := layer.Cache{Dir: t.TempDir()}
	made, err := cache.Layers(gittest.Context(t), r, r.Head, r.HeadTree, git.Owner{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(made.Modules.List) != 1 || len(made.Notes) > 0 {
		t.Fatalf("modules %+v, notes %q", made.Modules, made.Notes)
	}
	m := made.Modules.List[0]
	marker := filepath.Join(dir, "ran")
	hook := filepath.Join(m.Origin, "hooks", "reference-transaction")
	gittest.Write(t, filepath.Dir(hook), filepath.Base(hook), "#!/bin/sh\ntouch "+marker+"\n")
	if err := os.Chmod(hook, 0o755); err != nil {
		t.Fatal(err)
	}
	inner := filepath.Join(dir, "inner") // plays the sandbox's side
	gittest.Shell(t, dir, "git clone -q lib inner")
	quarantine := branch.Quarantine{Dir: filepath.Join(dir, "quarantine"), GitDir: filepath.Join(made.Modules.Layer, ".git", m.GitDir)}
	receive := func(m sandbox.Module, want string) error {
		cmd := exec.Command("git", "pack-objects", "--revs", "--stdout", "--thin", "-q")
		cmd.Dir, cmd.Stdin = inner, strings.NewReader(want+"\n^"+m.Commit+"\n")
		pack, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		return branch.ReceiveModule(gittest.Context(t), r, quarantine, m, bytes.NewReader(pack), want, m.Head)
	}
	has := func(oid string) bool {
		return exec.Command("git", "--git-dir", m.Origin, "--work-tree", dir, "cat-file", "-e", oid).Run() == nil
	}
	gittest.Shell(t, inner, "git checkout -q -b side; echo two >two; git add .; git commit -qm two; git checkout -q -; echo three >file; git commit -qam three; git merge -q --no-edit side")
	merged := gittest.Git(t, inner, "rev-parse", "HEAD")
	if err := receive(m, merged); err != nil {
		t.Fatal(err)
	}
	if got := gittest.Git(t, dir, "--git-dir", m.Origin, "--work-tree", dir, "rev-parse", "refs/litterbox/received/"+merged); got != merged {
		t.Errorf("the ref stands at %s", got)
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("a hook of the host ran")
	}
	gittest.Shell(t, dir, "rm "+hook)
	gittest.Git(t, dir, "--git-dir", m.Origin, "--work-tree", dir, "gc", "-q", "--prune=now")
	gittest.Git(t, dir, "--git-dir", m.Origin, "--work-tree", dir, "fsck", "--strict", "--connectivity-only", merged)
	m.Head = merged
	if err := receive(m, gittest.Git(t, inner, "rev-parse", "HEAD~1")); err != nil {
		t.Errorf("back to an older commit: %v", err)
	}

	blob := gittest.Git(t, inner, "rev-parse", "HEAD:file")
	for what, entry := range map[string]string{
		"a path into .git":       "100644 blob " + blob + "\t.git",
		"a spelling of .git":     "100644 blob " + blob + "\tGIT~1",
		"a mode git cannot have": "106777 blob " + blob + "\tfile",
		"a path that goes up":    "100644 blob " + blob + "\t..",
	} {
		cmd := exec.Command("git", "mktree", "--missing")
		cmd.Dir, cmd.Stdin = inner, strings.NewReader(entry+"\n")
		tree, err := cmd.Output()
		if err != nil {
			continue // this git makes no such tree
		}
		bad := gittest.Git(t, inner, "commit-tree", "-m", what, "-p", "HEAD", strings.TrimSpace(string(tree)))
		// On a side branch, too, after a tree that is as it should be.
		hidden := gittest.Git(t, inner, "commit-tree", "-m", "merge", "-p", "HEAD", "-p", bad, "HEAD^{tree}")
		for _, want := range []string{bad, hidden} {
			if err := receive(m, want); err == nil {
				t.Errorf("%s: taken", what)
			}
			if has(want) || has(strings.TrimSpace(string(tree))) {
				t.Errorf("%s: it reached the host", what)
			}
		}
	}
	if err := branch.ReceiveModule(gittest.Context(t), r, quarantine, m, strings.NewReader(""), strings.Repeat("ab", 20), m.Head); err == nil {
		t.Error("a commit that nobody has was taken")
	}
	if refs := gittest.Git(t, dir, "--git-dir", m.Origin, "--work-tree", dir, "for-each-ref", "--format=%(refname)", "refs/litterbox"); len(strings.Fields(refs)) != 2 {
		t.Errorf("refs: %s", refs)
	}
}
