package landing_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/litterbox-sandbox/litterbox/internal/branch/branchtest"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/git/gittest"
	"github.com/litterbox-sandbox/litterbox/internal/landing"
)

// merge runs the user's git merge and returns its exit code.
func merge(b *branchtest.Box, o landing.MergeOptions, args ...string) int {
	b.T.Helper()
	code, err := landing.RunMerge(gittest.Context(b.T), b.Repository, args, landing.MergeTarget{Branch: b.Name, Commit: b.Show("rev-parse", "refs/heads/"+b.Name), NeedsCommit: true}, o)
	if err != nil {
		b.T.Fatal(err)
	}
	return code
}

func landed(b *branchtest.Box, want bool) {
	b.T.Helper()
	got, err := landing.Landed(gittest.Context(b.T), b.Repository, b.Show("rev-parse", b.Name))
	if err != nil || got != want {
		b.T.Fatalf("landed: %v, %v; want %v", got, err, want)
	}
}

func TestLanded(t *testing.T) {
	b := branchtest.New(t, gittest.Repository(t), "fix")
	b.Inside("echo x > new")
	b.ImportNow()
	landed(b, false)
	merge(b, landing.MergeOptions{}, "--squash")
	landed(b, false) // only staged
	b.Show("commit", "-qm", "squashed")
	landed(b, true)
	gittest.Write(t, b.Repository.Top, "later", "x")
	gittest.Shell(t, b.Repository.Top, "git add later; git commit -qm later")
	landed(b, true) // the human went on
	b.Inside("echo y > new")
	b.ImportNow()
	landed(b, false)
	if code := merge(b, landing.MergeOptions{}, "-X", "theirs", "--no-edit"); code != 0 {
		t.Fatalf("git merge ended with %d", code)
	}
	landed(b, true)
}

func TestMergeInProgress(t *testing.T) {
	b := branchtest.New(t, gittest.Repository(t), "fix")
	b.Inside("echo agent > README")
	tip := b.ImportNow().Commit
	gittest.Write(t, b.Repository.Top, "README", "human\n")
	b.Show("commit", "-qam", "human")
	if code := merge(b, landing.MergeOptions{}, "--no-edit"); code != 1 {
		t.Fatalf("git merge ended with %d", code)
	}
	got, err := landing.MergeInProgress(gittest.Context(t), b.Repository)
	if diff := cmp.Diff(landing.InProgress{Head: tip, Unmerged: []string{"README"}}, got); err != nil || diff != "" {
		t.Fatal(diff, err)
	}
	landed(b, false)
	gittest.Write(t, b.Repository.Top, "README", "both\n")
	b.Show("add", "README")
	if got, err = landing.MergeInProgress(gittest.Context(t), b.Repository); err != nil || got.Head != tip || len(got.Unmerged) != 0 {
		t.Fatalf("%+v, %v", got, err)
	}
	t.Setenv("GIT_EDITOR", "true")
	if code := merge(b, landing.MergeOptions{}, "--continue"); code != 0 {
		t.Fatalf("git merge --continue ended with %d", code)
	}
	landed(b, true)
	if got, err = landing.MergeInProgress(gittest.Context(t), b.Repository); err != nil || got.Head != "" {
		t.Fatalf("%+v, %v", got, err)
	}
}

// With core.hooksPath=.husky, a branch that adds .husky/post-merge had it
// executed by the merge that brought it.
func TestHooksAtRisk(t *testing.T) {
	dir := gittest.Repository(t)
	canary := filepath.Join(t.TempDir(), "canary")
	b := branchtest.New(t, dir, "fix")
	b.Inside("mkdir .husky; printf '#!/bin/sh\ntouch " + canary + "\n' > .husky/post-merge; chmod +x .husky/post-merge; echo '[user]' > shared.gitconfig")
	tip := b.ImportNow().Commit
	changes, _, err := landing.ChangedAgainst(gittest.Context(t), b.Repository, b.Base, tip)
	if err != nil {
		t.Fatal(err)
	}
	risk := func(want string) {
		t.Helper()
		got, why, err := landing.HooksAtRisk(gittest.Context(t), b.Repository, changes)
		if err != nil || got != (want != "") || !strings.Contains(why, want) {
			t.Fatalf("%v %q %v, want %q", got, why, err, want)
		}
	}
	risk("")
	gittest.Git(t, dir, "config", "include.path", "../shared.gitconfig")
	risk("shared.gitconfig") // git would read it as soon as it exists
	gittest.Write(t, dir, "shared.gitconfig", "[user]\n\tname = x\n")
	risk("shared.gitconfig")
	if err := os.Remove(filepath.Join(dir, "shared.gitconfig")); err != nil {
		t.Fatal(err)
	}
	gittest.Git(t, dir, "config", "--unset", "include.path")
	risk("")
	gittest.Git(t, dir, "config", "core.hooksPath", ".husky")
	risk(".husky/post-merge")
	if code := merge(b, landing.MergeOptions{HooksOff: true}, "--no-ff", "--no-edit"); code != 0 {
		t.Fatalf("git merge ended with %d", code)
	}
	if _, err := os.Stat(canary); err == nil {
		t.Fatal("the hook ran")
	}
	b.Show("reset", "-q", "--hard", b.Base)
	merge(b, landing.MergeOptions{}, "--no-ff", "--no-edit")
	if _, err := os.Stat(canary); err != nil {
		t.Fatal("the hook did not run when asked to: the test proves nothing")
	}
}

// The target of a hook may be anywhere: husky 9 has stubs in a directory of its
// own, managers of hooks read files of the repository, hooks call scripts.
func TestHooksAtRiskByWhatTheyRead(t *testing.T) {
	for _, c := range []struct {
		name, hooks, hook, text string // core.hooksPath, a hook in it, its text
		link                    string // or the target of its link
		changed                 string
		want                    bool
	}{
		{name: "husky 9", hooks: ".husky/_", hook: "post-merge", text: `. "$(dirname "$0")/h"`, changed: ".husky/post-merge", want: true},
		{name: "husky 9 before its install", hooks: ".husky/_", changed: ".HUSKY/post-merge", want: true},
		{name: "husky 9, another file", hooks: ".husky/_", hook: "post-merge", text: `. "$(dirname "$0")/h"`, changed: "src/x"},
		{name: "deep", hooks: "tools/git/hooks", changed: "tools/lib.sh", want: true},
		{name: "lefthook", hook: "post-merge", text: "call_lefthook run post-merge", changed: ".config/lefthook.toml", want: true},
		{name: "lefthook without hooks", changed: "lefthook.yml"},
		{name: "a sample", hook: "post-merge.sample", text: "lefthook", changed: "lefthook.yml"},
		{name: "a script", hook: "post-merge", text: "exec ./scripts/sync.sh", changed: "scripts/lib/more.sh", want: true},
		{name: "a script at the root", hook: "post-merge", text: "sh sync.sh", changed: "sync.sh", want: true},
		{name: "another script", hook: "post-merge", text: "sh sync.sh", changed: "nc.sh"},
		{name: "a link", hook: "post-merge", link: "../../ci/hook", changed: "ci/hook", want: true},
		{name: "a tool", hook: "post-merge", text: "npx lint-staged", changed: "package.json", want: true},
		{name: "make", hook: "post-checkout", text: "make hooks", changed: "build/rules.mk", want: true},
		{name: "another tool", hook: "post-merge", text: `git lfs post-merge "$@"`, changed: "package.json"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := gittest.Repository(t)
			hooks := ".git/hooks"
			if c.hooks != "" {
				hooks = c.hooks
				gittest.Git(t, dir, "config", "core.hooksPath", hooks)
			}
			if c.hook != "" {
				if err := os.MkdirAll(filepath.Join(dir, hooks), 0o755); err != nil {
					t.Fatal(err)
				}
				path := filepath.Join(dir, hooks, c.hook)
				var err error
				if c.link != "" {
					err = os.Symlink(c.link, path)
				} else {
					err = os.WriteFile(path, []byte("#!/bin/sh\n"+c.text+"\n"), 0o755)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			r, err := git.Open(gittest.Context(t), dir)
			if err != nil {
				t.Fatal(err)
			}
			got, why, err := landing.HooksAtRisk(gittest.Context(t), r, []landing.Change{{Path: c.changed, NewMode: 0o100644, Status: 'A'}})
			if err != nil || got != c.want || got != strings.Contains(why, c.changed) {
				t.Errorf("%v, %q, %v", got, why, err)
			}
		})
	}
}

// A program that the configuration names needs an answer like a hook.
func TestConfigurationNamesPrograms(t *testing.T) {
	dir := gittest.Repository(t)
	b := branchtest.New(t, dir, "fix")
	b.Inside("mkdir cmds; echo x > cmds/clean.sh; echo x > cmds/other.sh; echo x > main")
	tip := b.ImportNow().Commit
	gittest.Git(t, dir, "config", "filter.x.clean", `"$(git rev-parse --show-toplevel)/cmds/clean.sh" %f`)
	gittest.Git(t, dir, "config", "init.defaultBranch", "main")
	_, risks, err := landing.ChangedAgainst(gittest.Context(t), b.Repository, b.Base, tip)
	if err != nil || len(risks) != 1 || risks[0].Path != "cmds/clean.sh" || risks[0].Reason != "your git configuration names it: filter.x.clean" {
		t.Fatalf("%+v, %v", risks, err)
	}
}

func TestRisky(t *testing.T) {
	plain := func(path string) landing.Change { return landing.Change{Path: path, NewMode: 0o100644, Status: 'A'} }
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
		if got := len(landing.Risky([]landing.Change{plain(path)})) == 1; got != want {
			t.Errorf("%q: %v", path, got)
		}
	}
	var got []string
	for _, risk := range landing.Risky([]landing.Change{
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
	b := branchtest.New(t, gittest.Repository(t), "fix")
	b.Inside("echo x > README; echo y > src/main.c")
	tip := b.ImportNow().Commit
	run := func(args ...string) string {
		t.Helper()
		var out bytes.Buffer
		code, err := landing.Diff(gittest.Context(t), b.Repository, b.Repository.Top, b.Base, tip, args, landing.Streams{Stdout: &out, Stderr: &out})
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
	b.Show("config", "diff.external", "touch "+canary+";:")
	if run("-p"); gittest.Exists(canary) {
		t.Fatal("diff.external ran")
	}
	_, err := landing.Diff(gittest.Context(t), b.Repository, b.Repository.Top, b.Base, tip, []string{"--ext-diff"}, landing.Streams{})
	gittest.Kind(t, err, fault.Denied, false)
}
