package branch_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/branch"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// merge runs the user's git merge and returns its exit code.
func (b *box) merge(o branch.MergeOptions, args ...string) int {
	b.t.Helper()
	code, err := b.r.RunMerge(b.t.Context(), args, branch.MergeTarget{Branch: b.name, Commit: b.show("rev-parse", "refs/heads/"+b.name), NeedsCommit: true}, o)
	if err != nil {
		b.t.Fatal(err)
	}
	return code
}

func (b *box) landed(want bool) {
	b.t.Helper()
	got, err := b.r.Landed(b.t.Context(), b.show("rev-parse", b.name))
	if err != nil || got != want {
		b.t.Fatalf("landed: %v, %v; want %v", got, err, want)
	}
}

func TestLanded(t *testing.T) {
	b := newBox(t, repository(t), "fix")
	b.inside("echo x > new")
	b.importNow()
	b.landed(false)
	b.merge(branch.MergeOptions{}, "--squash")
	b.landed(false) // only staged
	b.show("commit", "-qm", "squashed")
	b.landed(true)
	write(t, b.r.Top, "later", "x")
	sh(t, b.r.Top, "git add later; git commit -qm later")
	b.landed(true) // the human went on
	b.inside("echo y > new")
	b.importNow()
	b.landed(false)
	if code := b.merge(branch.MergeOptions{}, "-X", "theirs", "--no-edit"); code != 0 {
		t.Fatalf("git merge ended with %d", code)
	}
	b.landed(true)
}

func TestMergeInProgress(t *testing.T) {
	b := newBox(t, repository(t), "fix")
	b.inside("echo agent > README")
	tip := b.importNow().Commit
	write(t, b.r.Top, "README", "human\n")
	b.show("commit", "-qam", "human")
	if code := b.merge(branch.MergeOptions{}, "--no-edit"); code != 1 {
		t.Fatalf("git merge ended with %d", code)
	}
	got, err := b.r.MergeInProgress(t.Context())
	if diff := cmp.Diff(branch.InProgress{Head: tip, Unmerged: []string{"README"}}, got); err != nil || diff != "" {
		t.Fatal(diff, err)
	}
	b.landed(false)
	write(t, b.r.Top, "README", "both\n")
	b.show("add", "README")
	if got, err = b.r.MergeInProgress(t.Context()); err != nil || got.Head != tip || len(got.Unmerged) != 0 {
		t.Fatalf("%+v, %v", got, err)
	}
	t.Setenv("GIT_EDITOR", "true")
	if code := b.merge(branch.MergeOptions{}, "--continue"); code != 0 {
		t.Fatalf("git merge --continue ended with %d", code)
	}
	b.landed(true)
	if got, err = b.r.MergeInProgress(t.Context()); err != nil || got.Head != "" {
		t.Fatalf("%+v, %v", got, err)
	}
}

// With core.hooksPath=.husky, a branch that adds .husky/post-merge had it
// executed by the merge that brought it.
func TestHooksAtRisk(t *testing.T) {
	dir := repository(t)
	canary := filepath.Join(t.TempDir(), "canary")
	b := newBox(t, dir, "fix")
	b.inside("mkdir .husky; printf '#!/bin/sh\ntouch " + canary + "\n' > .husky/post-merge; chmod +x .husky/post-merge; echo '[user]' > shared.gitconfig")
	tip := b.importNow().Commit
	changes, _, err := b.r.ChangedAgainst(t.Context(), b.base, tip)
	if err != nil {
		t.Fatal(err)
	}
	risk := func(want string) {
		t.Helper()
		got, why, err := b.r.HooksAtRisk(t.Context(), changes)
		if err != nil || got != (want != "") || !strings.Contains(why, want) {
			t.Fatalf("%v %q %v, want %q", got, why, err, want)
		}
	}
	risk("")
	git(t, dir, "config", "include.path", "../shared.gitconfig")
	risk("shared.gitconfig") // git would read it as soon as it exists
	write(t, dir, "shared.gitconfig", "[user]\n\tname = x\n")
	risk("shared.gitconfig")
	if err := os.Remove(filepath.Join(dir, "shared.gitconfig")); err != nil {
		t.Fatal(err)
	}
	git(t, dir, "config", "--unset", "include.path")
	risk("")
	git(t, dir, "config", "core.hooksPath", ".husky")
	risk(".husky/post-merge")
	if code := b.merge(branch.MergeOptions{HooksOff: true}, "--no-ff", "--no-edit"); code != 0 {
		t.Fatalf("git merge ended with %d", code)
	}
	if _, err := os.Stat(canary); err == nil {
		t.Fatal("the hook ran")
	}
	b.show("reset", "-q", "--hard", b.base)
	b.merge(branch.MergeOptions{}, "--no-ff", "--no-edit")
	if _, err := os.Stat(canary); err != nil {
		t.Fatal("the hook did not run when asked to: the test proves nothing")
	}
}

func TestRisky(t *testing.T) {
	plain := func(path string) branch.Change { return branch.Change{Path: path, NewMode: 0o100644, Status: 'A'} }
	for path, want := range map[string]bool{
		".githooks/pre-commit": true, ".husky/x": true, "sub/.husky/x": true, ".pre-commit-config.yaml": true,
		".gitattributes": true, "a/.GitAttributes": true, ".gitmodules": true, ".vscode/tasks.json": true, ".idea/x": true,
		".devcontainer/devcontainer.json": true, ".envrc": true, "a/.envrc": true, ".mise.toml": true, ".claude/settings.json": true,
		".mcp.json": true, ".cursor/mcp.json": true, "AGENTS.md": true, "CLAUDE.md": true, "claude.MD": true, ".npmrc": true,
		".cargo/config": true, ".cargo/config.toml": true, "x/.cargo/config.toml": true, ".github/workflows/ci.yml": true,
		"package.json": true, "a/b/package.json": true, "Makefile": true, "makefile": true, "rules.mk": true, "setup.py": true,
		"build.rs": true, "Dockerfile": true, "Dockerfile.dev": true, "docker-compose.override.yml": true, "compose.yaml": true,
		".litterbox.toml": true, "conftest.py": true,
		"main.go": false, "docs/Makefile.md": false, "vscode/x": false, "my.vscode/x": false, "package.json.txt": false,
		".cargo/registry": false, "workflows/x": false,
	} {
		if got := len(branch.Risky([]branch.Change{plain(path)})) == 1; got != want {
			t.Errorf("%q: %v", path, got)
		}
	}
	var got []string
	for _, risk := range branch.Risky([]branch.Change{
		{Path: "run", NewMode: 0o100755, Status: 'A'},
		{Path: "was", OldMode: 0o100755, NewMode: 0o100755, Status: 'M'},
		{Path: "now", OldMode: 0o100644, NewMode: 0o100755, Status: 'M'},
		{Path: "ln", NewMode: 0o120000, Status: 'A'},
		{Path: "mod", NewMode: 0o160000, Status: 'A'},
		{Path: "Makefile", OldMode: 0o100644, Status: 'D'},
	}) {
		got = append(got, risk.Path+": "+risk.Reason)
	}
	want := []string{
		"mod: a submodule: git fetches what it names", "now: a new executable", "run: a new executable", "ln: a new symbolic link",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
}

func TestDiffPutsTheUsersArgumentsInPlace(t *testing.T) {
	b := newBox(t, repository(t), "fix")
	b.inside("echo x > README; echo y > src/main.c")
	tip := b.importNow().Commit
	run := func(args ...string) string {
		t.Helper()
		var out bytes.Buffer
		code, err := b.r.Diff(t.Context(), b.r.Top, b.base, tip, args, branch.Streams{Stdout: &out, Stderr: &out})
		if err != nil || code > 1 {
			t.Fatalf("%q: %d, %v\n%s", args, code, err, out.String())
		}
		return strings.TrimSpace(out.String())
	}
	for want, args := range map[string][]string{
		"README\nsrc/main.c": {"--name-only"},
		"README":             {"--name-only", "--", "README"},
		"M\tsrc/main.c":      {"--name-status", "--", "src"},
	} {
		if diff := cmp.Diff(want, run(args...)); diff != "" {
			t.Errorf("%q: %s", args, diff)
		}
	}
	canary := filepath.Join(t.TempDir(), "canary")
	b.show("config", "diff.external", "touch "+canary+";:")
	if run("-p"); exists(canary) {
		t.Fatal("diff.external ran")
	}
	_, err := b.r.Diff(t.Context(), b.r.Top, b.base, tip, []string{"--ext-diff"}, branch.Streams{})
	kind(t, err, fault.Denied, false)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// Whoever collects garbage right before a milestone's commit is named, and has
// looked at the refs already, does not take it away.
func TestMilestoneSurvivesACollection(t *testing.T) {
	b := newBox(t, repository(t), "fix")
	b.inside("echo x > new")
	tree := b.importNow().Tree
	request := branch.MilestoneRequest{ID: "id1", Branch: "fix", Onto: b.base, Subject: "milestone", Author: b.request().Author, State: b.state}
	commit, err := branch.Squash(t.Context(), b.r, request, tree, func(commit string) error {
		b.show("reflog", "expire", "--expire=now", "--all")
		b.show("gc", "-q", "--prune=now")
		b.show("update-ref", "refs/heads/fix", commit)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := b.show("log", "-1", "--format=%H %P %T %s", "fix"); got != commit+" "+b.base+" "+tree+" milestone" {
		t.Errorf("the branch is at %q", got)
	}
	b.show("gc", "-q", "--prune=now")
	b.show("fsck", "--full", "--strict")
	if refs := b.show("for-each-ref", "--format=%(refname)"); strings.Contains(refs, "present") {
		t.Errorf("left behind:\n%s", refs)
	}
	if kept, err := filepath.Glob(filepath.Join(b.r.CommonDir, "objects/pack/*.keep")); err != nil || len(kept) > 0 {
		t.Errorf("left behind: %q, %v", kept, err)
	}
}

func TestMilestoneKeepsWhatItSquashes(t *testing.T) {
	b := newBox(t, repository(t), "fix")
	onto, ctx := b.base, context.Background()
	for round := range 2 {
		for range 3 {
			b.inside("echo x >> new")
			b.importNow()
		}
		tip := b.show("rev-parse", "fix")
		got, err := b.r.Milestone(ctx, branch.MilestoneRequest{
			ID: "id1", Branch: "fix", Onto: onto, Subject: "milestone", Author: b.request().Author, State: b.state,
			Trailers: []branch.Trailer{{Key: "Sandbox", Value: "fix"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if b.show("rev-parse", "fix") != got.Commit || b.show("rev-parse", got.Commit+"^") != onto ||
			b.show("rev-parse", got.Commit+"^{tree}") != b.show("rev-parse", tip+"^{tree}") || b.show("rev-parse", got.History) != tip {
			t.Fatalf("round %d: %+v", round, got)
		}
		onto = got.Commit
	}
	if got := b.importNow(); got.Changed != 0 {
		t.Fatalf("%+v", got)
	}
	b.inside("rm new")
	if got := b.importNow(); got.Changed != 1 || got.Tree != b.r.HeadTree {
		t.Fatalf("%+v", got)
	}
	if n, err := b.r.Unmerged(ctx, "fix", b.base); err != nil || n != 4 {
		t.Fatalf("%d, %v", n, err)
	}
}

func TestTrashKeepsTheTip(t *testing.T) {
	b := newBox(t, repository(t), "fix")
	b.inside("echo x > new")
	tip := b.importNow().Commit
	linked := filepath.Join(t.TempDir(), "linked")
	b.show("worktree", "add", "-q", linked, "fix")
	_, _, err := b.r.Trash(t.Context(), "fix", "fix", someTime)
	kind(t, err, fault.Conflict, true)
	b.show("worktree", "remove", linked)
	ref, got, err := b.r.Trash(t.Context(), "fix", "fix", someTime)
	if err != nil || got != tip || b.show("rev-parse", ref) != tip || !strings.HasPrefix(ref, "refs/litterbox/trash/fix-") {
		t.Fatalf("%q %q %v", ref, got, err)
	}
	_, err = b.r.Tip(t.Context(), "fix")
	kind(t, err, fault.NotFound, false)
	_, _, err = b.r.Trash(t.Context(), "fix", "fix", someTime)
	kind(t, err, fault.NotFound, false)
}
