// Package large_test makes large things in a sandbox: many files, a long
// history, a file of more than two gigabytes, deep paths. Each change is made
// a second time by git in a copy of the repository, and must give the same
// tree. Times are printed beside git's and never judged.
package large_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/test/program"
)

var built *program.Built

func TestMain(m *testing.M) {
	if os.Getenv("LITTERBOX_TEST_LARGE") == "" {
		os.Exit(m.Run()) // nothing needs the program
	}
	os.Exit(program.Main(m, func(b *program.Built) { built = b }))
}

// limit bounds every command.
const limit = 20 * time.Minute

// host is a machine with a repository for something large, and a copy of it.
type host struct {
	*program.Host
	copy string
}

// large makes a host if these tests were requested. They take minutes and up
// to ten gigabytes of the temporary directory, which are freed after each.
func large(t *testing.T) *host {
	t.Helper()
	if os.Getenv("LITTERBOX_TEST_LARGE") == "" {
		t.Skip("only by make test-large, or with LITTERBOX_TEST_LARGE=1")
	}
	h := built.New(t)
	// Git's own packing in the background must not be measured.
	h.Git("config", "gc.auto", "0")
	h.Git("config", "advice.detachedHead", "false")
	return &host{Host: h, copy: filepath.Join(h.Dir, "copy")}
}

// run runs a command in dir, which must succeed.
func (h *host) run(dir string, argv ...string) program.Result {
	h.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	var stdout, stderr bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, h.Env, &stdout, &stderr
	cmd.WaitDelay = 5 * time.Second
	err := cmd.Run()
	var exit *exec.ExitError
	result := program.Result{Stdout: stdout.String(), Stderr: stderr.String()}
	switch {
	case ctx.Err() != nil:
		h.Fatalf("%.300q did not end within %v\n%s", argv, limit, result.Stderr)
	case errors.As(err, &exit):
		result.Code = exit.ExitCode()
	case err != nil:
		h.Fatalf("cannot run %.300q: %v", argv, err)
	}
	if result.Code != 0 {
		h.Fatalf("%.300q exited %d:\n%s%s", argv, result.Code, result.Stdout, result.Stderr)
	}
	return result
}

// litterbox runs the program in the repository.
func (h *host) litterbox(args ...string) program.Result {
	h.Helper()
	return h.run(h.Repo, append([]string{h.Program("litterbox")}, args...)...)
}

// shell runs a script in dir on the host and returns what it prints.
func (h *host) shell(dir, script string) string {
	h.Helper()
	return strings.TrimSpace(h.run(dir, "/bin/sh", "-e", "-c", script).Stdout)
}

// duplicate copies the repository, for git's side.
func (h *host) duplicate() {
	h.Helper()
	h.run(h.Dir, "cp", "-a", h.Repo, h.copy)
}

// both makes a change in the sandbox, and by git in the copy, and compares the
// trees. It returns what exec printed.
func (h *host) both(what, script string) program.Result {
	h.Helper()
	started := time.Now()
	got := h.litterbox("exec", "box", "--", "/bin/sh", "-e", "-c", script)
	ours := time.Since(started)
	started = time.Now()
	h.shell(h.copy, script+"\ngit add -A && git commit -q -m change")
	h.compared(what, ours, time.Since(started))
	h.same("box")
	return got
}

// same requires a revision of the repository to have the copy's tree.
func (h *host) same(revision string) {
	h.Helper()
	want, have := h.shell(h.copy, "git rev-parse 'HEAD^{tree}'"), h.Git("rev-parse", revision+"^{tree}")
	if want == have {
		return
	}
	h.shell(h.Repo, "git fetch -q ../../copy HEAD")
	h.Errorf("git's tree %s and the one of %s, %s, differ:\n%.2000s", want, revision, have,
		h.shell(h.Repo, "git diff --stat FETCH_HEAD "+revision+" | tail -n 20"))
}

// compared prints two times.
func (h *host) compared(what string, ours, gits time.Duration) {
	h.Helper()
	h.Logf("%-44s %8v  git %8v  ratio %.2f", what, ours.Round(time.Millisecond), gits.Round(time.Millisecond), float64(ours)/float64(gits))
}

// timed returns how long something takes.
func timed(do func()) time.Duration {
	started := time.Now()
	do()
	return time.Since(started)
}

// clone makes a whole clone of the sandbox's branch, and returns its place.
func (h *host) clone() string {
	h.Helper()
	to := filepath.Join(h.Dir, "clone")
	h.run(h.Dir, "git", "clone", "-q", "--no-local", "--single-branch", "--branch", "box", h.Repo, to)
	h.run(to, "git", "fsck", "--no-dangling")
	if left := h.shell(to, "git status --porcelain | head -n 5"); left != "" {
		h.Errorf("a clone of the branch is not clean:\n%s", left)
	}
	return to
}

// merge merges the sandbox's branch. The checkout is clean after it, and has
// the copy's tree.
func (h *host) merge() {
	h.Helper()
	ours := timed(func() { h.litterbox("merge", "box", "--yes") })
	h.Logf("%-44s %8v", "merge", ours.Round(time.Millisecond))
	h.same("HEAD")
	if left := h.shell(h.Repo, "git status --porcelain | head -n 5"); left != "" {
		h.Errorf("the checkout is not clean after the merge:\n%s", left)
	}
}
