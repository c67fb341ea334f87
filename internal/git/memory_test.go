package git_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/git/gittest"
)

// gitLog puts a git before the real one that notes every start.
func gitLog(t *testing.T) (started func() int) {
	t.Helper()
	real, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	gittest.Write(t, dir, "git", "#!/bin/sh\necho x >>'"+log+"'\nexec '"+real+"' \"$@\"\n")
	if err := os.Chmod(filepath.Join(dir, "git"), 0o755); err != nil {
		t.Fatal(err)
	}
	age(t, filepath.Join(dir, "git"))
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	return func() int {
		content, err := os.ReadFile(log)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		_ = os.Remove(log) // it may not be there
		return strings.Count(string(content), "x")
	}
}

// age waits until a file counts as settled: its ctime cannot be set back.
func age(t *testing.T, paths ...string) {
	t.Helper()
	for _, path := range paths {
		for {
			settled, err := git.HasSettled(path)
			if err != nil {
				t.Fatal(err)
			}
			if settled {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// The memory answers as git would, whatever happens to the repository
// meanwhile; and in an ordinary one it does answer.
func TestMemoryAgreesWithGit(t *testing.T) {
	dir := gittest.Repository(t)
	userConfig := filepath.Join(os.Getenv("HOME"), ".gitconfig")
	gittest.Git(t, dir, "worktree", "add", "-q", "-b", "side", "../linked")
	linked := filepath.Join(dir, "../linked")
	started := gitLog(t)
	age(t, userConfig, filepath.Join(dir, ".git/config"))
	memories := t.TempDir()
	memory := git.Memory{Dir: func(string) string { return memories }}

	check := func(from, what string, processes int) {
		t.Helper()
		want, wantErr := git.Open(gittest.Context(t), from)
		started()
		got, err := memory.Open(gittest.Context(t), from)
		if n := started(); processes >= 0 && n != processes {
			t.Errorf("%s: %d processes, want %d", what, n, processes)
		}
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%s: %v, git says %v", what, err, wantErr)
		}
		if err != nil {
			return
		}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(git.Repository{}), ignoreSettings); diff != "" {
			t.Errorf("%s (-git +memory):\n%s", what, diff)
		}
		if diff := cmp.Diff(git.Values(t, want), git.Values(t, got)); diff != "" {
			t.Errorf("%s: settings (-git +memory):\n%s", what, diff)
		}
	}
	const asked, known = 2, 0 // rev-parse and config
	check(dir, "the first time", asked)
	check(dir, "the second time", known)
	check(filepath.Join(dir, "src/lib"), "in a directory below", known)
	check(linked, "in a linked work tree", asked)
	check(linked, "there the second time", known)

	gittest.Write(t, dir, "README", "more\n")
	gittest.Git(t, dir, "commit", "-qam", "second")
	started()
	check(dir, "after a commit", known)
	gittest.Git(t, dir, "checkout", "-q", "--detach")
	check(dir, "with a detached HEAD", known)
	gittest.Git(t, dir, "checkout", "-q", "-b", "nested/name")
	check(dir, "on another branch", known)
	gittest.Git(t, dir, "pack-refs", "--all")
	check(dir, "with packed refs", known)
	gittest.Git(t, dir, "repack", "-adq")
	gittest.Git(t, dir, "prune-packed")
	started()
	check(dir, "when only a pack holds the commit", asked)
	check(dir, "once that was asked", known)
	gittest.Git(t, dir, "symbolic-ref", "refs/heads/alias", "refs/heads/main")
	gittest.Git(t, dir, "symbolic-ref", "HEAD", "refs/heads/alias")
	started()
	check(dir, "through a symbolic branch", asked)
	gittest.Git(t, dir, "checkout", "-q", "main")

	// A file that has just changed is asked for each time. On a busy machine it
	// may be old before both times are over; then it changes again.
	config := filepath.Join(dir, ".git/config")
	for try := 0; ; try++ {
		gittest.Git(t, dir, "config", "user.name", fmt.Sprint("Grace ", try))
		started()
		counts := [2]int{}
		for i := range counts {
			if _, err := memory.Open(gittest.Context(t), dir); err != nil {
				t.Fatal(err)
			}
			counts[i] = started()
		}
		if settled, err := git.HasSettled(config); err != nil {
			t.Fatal(err)
		} else if settled && try < 100 {
			continue
		}
		if counts != [2]int{asked, asked} {
			t.Errorf("with a configuration changed just now: %d processes, want %d each time", counts, asked)
		}
		break
	}
	age(t, config)
	check(dir, "when it has settled", asked)
	check(dir, "and was asked", known)
	gittest.Write(t, filepath.Join(os.Getenv("XDG_CONFIG_HOME"), "git"), "config", "[core]\n\tautocrlf = input\n")
	age(t, filepath.Join(os.Getenv("XDG_CONFIG_HOME"), "git/config"))
	check(dir, "with a configuration that did not exist", asked)
	check(dir, "once that was asked, too", known)
	if err := os.RemoveAll(os.Getenv("XDG_CONFIG_HOME")); err != nil {
		t.Fatal(err)
	}
	check(dir, "without it again", asked)
	check(dir, "once its end was asked", known)
	t.Setenv("GIT_CONFIG_GLOBAL", filepath.Join(t.TempDir(), "none"))
	check(dir, "with the user's configuration elsewhere", asked)
	os.Unsetenv("GIT_CONFIG_GLOBAL")

	gittest.Git(t, dir, "init", "-q", "--bare", "bare.git")
	started()
	check(filepath.Join(dir, "bare.git"), "in a bare repository inside", -1)
	check(filepath.Join(dir, ".git"), "in the git directory", -1)
	gittest.Git(t, dir, "config", "include.path", "../more")
	age(t, filepath.Join(dir, ".git/config"))
	started()
	check(dir, "with an include", asked)
	check(dir, "with an include the second time", asked)
	gittest.Git(t, dir, "config", "--unset", "include.path")
	gittest.Git(t, dir, "config", "core.worktree", linked)
	age(t, filepath.Join(dir, ".git/config"))
	started()
	check(dir, "with another work tree", asked)
	check(dir, "with another work tree the second time", asked)
}

// A configuration that changes after a sandbox was made is asked for by one
// command, not by each: they know the repository, and ask for settings only.
func TestMemoryLearnsFromSettings(t *testing.T) {
	dir := gittest.Repository(t)
	memories := t.TempDir()
	memory := git.Memory{Dir: func(string) string { return memories }}
	common := filepath.Join(dir, ".git")
	started := gitLog(t)
	files := []string{filepath.Join(os.Getenv("HOME"), ".gitconfig"), filepath.Join(common, "config")}
	age(t, files...)
	opened, err := memory.Open(gittest.Context(t), dir)
	if err != nil {
		t.Fatal(err)
	}
	gittest.Git(t, dir, "config", "user.name", "Grace")
	age(t, files...)
	started()
	for _, want := range []int{1, 0} {
		values := git.Values(t, memory.At(gittest.Context(t), common, dir, opened.Head))
		if n := started(); n != want {
			t.Errorf("%d processes, want %d", n, want)
		}
		if values["user.name"] != "Grace" {
			t.Errorf("user.name is %q", values["user.name"])
		}
	}
	again, err := memory.Open(gittest.Context(t), dir)
	if err != nil {
		t.Fatal(err)
	}
	if n := started(); n != 0 || again.Head != opened.Head || again.HeadTree != opened.HeadTree {
		t.Errorf("%d processes; HEAD %s %s, want %s %s", n, again.Head, again.HeadTree, opened.Head, opened.HeadTree)
	}
}

// A setting that is not kept cannot be read: each one that the package reads
// is in a section that the memory keeps.
func TestMemoryKeepsWhatIsAsked(t *testing.T) {
	names, err := filepath.Glob("../*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	asked := regexp.MustCompile(`(?:\.[vV]alues\[|[tT]ruth\(|userFile\()"([a-z0-9.]+)"`)
	found := 0
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range asked.FindAllStringSubmatch(string(content), -1) {
			found++
			if !git.Remembered(match[1]) {
				t.Errorf("%s asks for %q, which the memory does not keep: rememberedSections", name, match[1])
			}
		}
	}
	if found < 10 {
		t.Errorf("only %d settings found: the pattern is out of date", found)
	}
}

// ignoreSettings leaves out what git is asked for only when needed.
var ignoreSettings = cmp.FilterPath(func(p cmp.Path) bool { return strings.EqualFold(p.Last().String(), ".settings") }, cmp.Ignore())

// git's configuration can hold passwords, too.
func TestMemoryHoldsNoCredentials(t *testing.T) {
	dir := gittest.Repository(t)
	gittest.Git(t, dir, "config", "http.extraHeader", "Authorization: swordfish")
	gittest.Git(t, dir, "remote", "add", "origin", "https://me:swordfish@example.com/x.git")
	age(t, filepath.Join(dir, ".git/config"), filepath.Join(os.Getenv("HOME"), ".gitconfig"))
	memories := t.TempDir()
	memory := git.Memory{Dir: func(string) string { return memories }}
	if _, err := memory.Open(gittest.Context(t), dir); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(memories, "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%q, %v", files, err)
	}
	content, err := os.ReadFile(files[0])
	if err != nil || strings.Contains(string(content), "swordfish") || !strings.Contains(string(content), "Ada") {
		t.Errorf("%v:\n%s", err, content)
	}
}
