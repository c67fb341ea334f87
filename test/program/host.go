package program

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// Descriptors is the variable by which tests of the network run another way:
// with "off", connections go over streams of the wire.
const Descriptors = "LITTERBOX_DESCRIPTORS"

// Host is a machine as litterbox sees it: a home, a state directory and a
// repository, in directories of the test's own.
type Host struct {
	testing.TB
	built *Built

	Dir   string   // everything below
	Home  string   //
	State string   // XDG_STATE_HOME
	Repo  string   // a repository with one commit, on branch main
	Env   []string // of every command; a test may append

	// Files are descriptors 3 and on of every command.
	Files []*os.File

	// Limit bounds every command: a test that hangs says nothing.
	Limit time.Duration

	far   *Elsewhere // the machine of its sandboxes; nil for this one
	clear []string   // empties that machine of them
}

// Result is what a command did.
type Result struct {
	Code           int
	Stdout, Stderr string
}

// New makes a host. Sandboxes that still run end with the test.
func (b *Built) New(t testing.TB) *Host {
	t.Helper()
	b.Require(t)
	dir := t.TempDir()
	h := &Host{
		TB: t, built: b, Dir: dir, Limit: 3 * time.Minute,
		Home: filepath.Join(dir, "home"), State: filepath.Join(dir, "state"), Repo: filepath.Join(dir, "src", "project"),
	}
	h.Env = []string{
		"HOME=" + h.Home, "XDG_STATE_HOME=" + h.State, "XDG_CONFIG_HOME=" + filepath.Join(h.Home, ".config"),
		"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "GIT_CONFIG_NOSYSTEM=1", "TERM=dumb",
	}
	// How connections leave sandboxes is a parameter of whole test runs.
	if way := os.Getenv(Descriptors); way != "" {
		h.Env = append(h.Env, Descriptors+"="+way)
	}
	for _, made := range []string{h.Home, h.State, h.Repo} {
		if err := os.MkdirAll(made, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	h.Put(filepath.Join(h.Home, ".gitconfig"), "[user]\n\tname = Test User\n\temail = test@example.com\n[init]\n\tdefaultBranch = main\n")
	h.Put(filepath.Join(h.Repo, "README"), "hello\n")
	h.Put(filepath.Join(h.Repo, "src/main.txt"), "the program\n")
	h.Git("init", "--quiet")
	h.Git("add", ".")
	h.Git("commit", "--quiet", "-m", "first")
	t.Cleanup(h.end)
	return h
}

// end stops every sandbox and opens up the files it leaves, so that the test's
// directory can be removed.
func (h *Host) end() {
	listed := h.Litterbox("list", "--all", "--json")
	var sandboxes []struct{ Name, Repository string }
	if err := json.Unmarshal([]byte(listed.Stdout), &sandboxes); err != nil {
		h.Errorf("cannot list the sandboxes to stop them: %v\n%s", err, listed.Stderr)
	}
	for _, sandbox := range sandboxes {
		if got := h.Litterbox("-C", sandbox.Repository, "delete", "--force", "--purge", sandbox.Name); got.Code != 0 {
			h.Errorf("cannot delete sandbox %q: %s", sandbox.Name, got.Stderr)
		}
	}
	if len(h.clear) > 0 {
		h.Litterbox("trash", "empty", "--all", "--yes") // it keeps files in the machine
		if got := h.Litterbox(h.clear...); got.Code != 0 {
			h.Errorf("litterbox %q: %s", h.clear, got.Stderr)
		}
	}
	_ = filepath.WalkDir(h.Dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			_ = os.Chmod(path, 0o700) // one that has gone meanwhile needs nothing, and the others do
		}
		return nil
	})
}

// Program returns the path of a built program.
func (h *Host) Program(name string) string { return h.built.Path(name) }

// Put writes a file of the host and makes its directories.
func (h *Host) Put(path, content string) {
	h.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		h.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		h.Fatal(err)
	}
}

// File returns an open file with that content, at its beginning.
func (h *Host) File(content string) *os.File {
	h.Helper()
	file, err := os.CreateTemp(h.Dir, "file-")
	if err == nil {
		_, err = file.WriteString(content)
	}
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		h.Fatal(err)
	}
	return file
}

// Fsck fails the test unless every object of the repository is there. The
// user's git gc, which merges start, and ours replace packs meanwhile, and
// fsck looks for packs only once: it is run again before it counts.
func (h *Host) Fsck() {
	h.Helper()
	for try := 1; ; try++ {
		got := h.Command(h.Repo, "git", "fsck", "--connectivity-only", "--no-dangling")
		if got.Code == 0 {
			return
		}
		if try == 3 {
			h.Fatalf("git fsck exited %d: %s%s", got.Code, got.Stdout, got.Stderr)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// Command runs a program of the host in dir, with the host's environment.
func (h *Host) Command(dir, name string, args ...string) Result {
	h.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), h.Limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	var stdout, stderr bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = dir, h.Env, &stdout, &stderr, h.Files
	// A descendant that keeps the pipes open must not keep the test.
	cmd.WaitDelay = 5 * time.Second
	err := cmd.Run()
	result := Result{Stdout: stdout.String(), Stderr: stderr.String()}
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		result.Code = exit.ExitCode()
	case err != nil:
		h.Fatalf("cannot run %s %q: %v\n%s", name, args, err, result.Stderr)
	}
	if ctx.Err() != nil {
		h.Fatalf("%s %q did not end within %v\n%s", name, args, h.Limit, result.Stderr)
	}
	return result
}

// Litterbox runs litterbox in the repository.
func (h *Host) Litterbox(args ...string) Result {
	h.Helper()
	return h.Command(h.Repo, h.Program("litterbox"), args...)
}

// Must runs litterbox, which must succeed, and returns its output.
func (h *Host) Must(args ...string) string {
	h.Helper()
	return h.succeeded("litterbox", args, h.Litterbox(args...))
}

// Git runs git in the repository as the user would; it must succeed.
func (h *Host) Git(args ...string) string {
	h.Helper()
	return h.succeeded("git", args, h.Command(h.Repo, "git", args...))
}

func (h *Host) succeeded(name string, args []string, got Result) string {
	h.Helper()
	if got.Code != 0 {
		h.Fatalf("%s %q exited %d:\n%s%s", name, args, got.Code, got.Stdout, got.Stderr)
	}
	return strings.TrimSuffix(got.Stdout, "\n")
}

// Shell runs a script on the host, outside every sandbox.
func (h *Host) Shell(script string) Result {
	h.Helper()
	return h.Command(h.Repo, "/bin/sh", "-c", script)
}

// Inside runs a command in a sandbox, and commits nothing.
func (h *Host) Inside(name string, argv ...string) Result {
	h.Helper()
	return h.Litterbox(append([]string{"exec", name, "--no-commit", "--"}, argv...)...)
}

// InsideShell runs a script in a sandbox and commits what it changed.
func (h *Host) InsideShell(name, script string) Result {
	h.Helper()
	return h.Litterbox("exec", name, "--", "/bin/sh", "-c", script)
}

// With returns the host with more in its environment.
func (h *Host) With(env ...string) *Host {
	other := *h
	other.Env = append(slices.Clone(h.Env), env...)
	return &other
}

// Before is a host whose commands look for programs in dir first.
func (h *Host) Before(dir string) *Host {
	h.Helper()
	return h.With("PATH=" + dir + ":" + h.SearchPath())
}

// SearchPath is where the host's commands look for programs: of several entries of an
// environment the last one counts.
func (h *Host) SearchPath() string {
	h.Helper()
	for _, entry := range slices.Backward(h.Env) {
		if path, found := strings.CutPrefix(entry, "PATH="); found {
			return path
		}
	}
	h.Fatal("the host has no PATH")
	return ""
}
