package gittest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/caller"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
)

// Home gives the test its own HOME and git configuration, and an umask that
// must not matter.
func Home(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for _, kv := range os.Environ() {
		if key, _, _ := strings.Cut(kv, "="); strings.HasPrefix(key, "GIT_") {
			t.Setenv(key, "")
			os.Unsetenv(key)
		}
	}
	t.Setenv("HOME", dir)
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(dir, ".config"))
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	Write(t, dir, ".gitconfig", "[user]\n\tname = Ada\n\temail = ada@example.com\n[init]\n\tdefaultBranch = main\n")
	return dir
}

func Write(t testing.TB, dir, name, content string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Git runs the user's git and returns what it printed.
func Git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSuffix(string(out), "\n")
}

func Shell(t testing.TB, dir, script string) {
	t.Helper()
	cmd := exec.Command("sh", "-e", "-c", script)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("sh %q: %v\n%s", script, err, out)
	}
}

// Repository makes one with a commit of some files.
func Repository(t testing.TB) string {
	t.Helper()
	Home(t)
	dir := filepath.Join(t.TempDir(), "project")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	Git(t, dir, "init", "-q")
	Write(t, dir, "README", "hello\n")
	Write(t, dir, "src/main.c", "int main;\n")
	Write(t, dir, "src/lib/a.c", "a\n")
	Write(t, dir, "src/lib/b.c", "b\n")
	Write(t, dir, "docs/one.md", "1\n")
	Write(t, dir, ".gitignore", "*.o\nbuild/\n")
	Write(t, dir, "tools/run.sh", "#!/bin/sh\n")
	Shell(t, dir, "chmod +x tools/run.sh; ln -s README link; git add -A; git commit -qm first")
	return dir
}

func Open(t testing.TB, dir string) *git.Repository {
	t.Helper()
	r, err := git.Open(Context(t), dir)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Kind requires an error of a kind, with a hint where one is promised.
func Kind(t *testing.T, err error, want fault.Kind, hinted bool) {
	t.Helper()
	if got := fault.KindOf(err); got != want {
		t.Fatalf("got kind %q (%v), want %q", got, err, want)
	}
	if hinted && fault.HintOf(err) == "" {
		t.Fatalf("no hint in %v", err)
	}
}

func Exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// Context returns the test's context on behalf of the user who runs the test,
// with the current environment: call it after [Home].
func Context(t testing.TB) context.Context {
	return caller.For(t.Context(), caller.ThisProcess())
}
