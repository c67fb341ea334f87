package engine_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/driver/fake"
	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/git/gittest"
)

// A git that was started ahead and not needed has ended when the command has: it
// touches no repository later, which may be removed by then.
func TestACommandLeavesNoGitBehind(t *testing.T) {
	w := newWorldOf(t, fake.Options{})
	ctx := gittest.Context(t)
	if _, err := w.Create(ctx, engine.CreateRequest{Dir: w.dir, Name: "fix"}); err != nil {
		t.Fatal(err)
	}
	real, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	bin, log := t.TempDir(), filepath.Join(t.TempDir(), "log")
	gittest.Write(t, bin, "git", "#!/bin/sh\ncase \"$*\" in *fast-import*) ;; *) exec "+real+" \"$@\" ;; esac\necho begun >>"+log+"\n"+real+" \"$@\"\necho ended >>"+log+"\n")
	if err := os.Chmod(filepath.Join(bin, "git"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	// A shell without changes makes no commit.
	if _, err := w.Exec(gittest.Context(t), engine.ExecRequest{Dir: w.dir, Name: "fix", Argv: []string{"true"}, Kind: "shell"}); err != nil {
		t.Fatal(err)
	}
	lines, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if begun, ended := strings.Count(string(lines), "begun"), strings.Count(string(lines), "ended"); begun == 0 || begun != ended {
		t.Errorf("%d begun and %d ended", begun, ended)
	}
}
