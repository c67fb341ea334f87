package gitsuite_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/test/gitsuite"
	"github.com/litterbox-sandbox/litterbox/test/program"
)

var built *program.Built

func TestMain(m *testing.M) {
	if os.Getenv("LITTERBOX_TEST_GIT") == "" {
		os.Exit(m.Run()) // nothing needs the program
	}
	os.Exit(program.Main(m, func(b *program.Built) { built = b }))
}

// limit bounds a script on one side. The longest take some minutes.
const limit = 20 * time.Minute

// source is the directory that test/gitsuite/fetch has filled.
func source(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("LITTERBOX_TEST_GIT")
	if dir == "" {
		if slices.Contains(strings.Split(os.Getenv("LITTERBOX_TEST_REQUIRE"), ","), "git-suite") {
			t.Fatal("LITTERBOX_TEST_REQUIRE demands git-suite, and LITTERBOX_TEST_GIT names no source of git")
		}
		t.Skip("LITTERBOX_TEST_GIT names no source of git; see make test-git")
	}
	has, err := os.ReadFile(filepath.Join(dir, "version"))
	if err != nil {
		t.Fatalf("%s has no source of git: %v (run test/gitsuite/fetch %s)", dir, err, dir)
	}
	installed, err := exec.Command("dpkg-query", "-W", "-f", "${source:Version}", "git").Output()
	if err != nil {
		t.Fatalf("cannot ask which git is installed: %v", err)
	}
	if want, have := string(installed), strings.TrimSpace(string(has)); want != have {
		t.Fatalf("%s has the source of git %s, and %s is installed (run test/gitsuite/fetch %s)", dir, have, want, dir)
	}
	return filepath.Join(dir, "source")
}

// scripts are the names to run: the quick ones, or what LITTERBOX_GIT_SUITE
// says, "subset" or patterns separated by spaces.
func scripts(t *testing.T, dir string) []string {
	t.Helper()
	patterns := quick
	switch text := os.Getenv("LITTERBOX_GIT_SUITE"); text {
	case "", "quick":
	case "subset":
		patterns = subset
	default:
		patterns = strings.Fields(text)
	}
	var names []string
	for _, pattern := range patterns {
		found, err := filepath.Glob(filepath.Join(dir, "t", "t[0-9][0-9][0-9][0-9]-*.sh"))
		if err != nil {
			t.Fatal(err)
		}
		before := len(names)
		for _, path := range found {
			name := strings.TrimSuffix(filepath.Base(path), ".sh")
			match, err := filepath.Match(pattern, name)
			if err != nil {
				t.Fatalf("LITTERBOX_GIT_SUITE: %q: %v", pattern, err)
			}
			if match {
				names = append(names, name)
			}
		}
		if len(names) == before {
			t.Fatalf("git's test-suite has no script %q", pattern)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// TestSuite runs scripts of git's test suite with the installed git, outside
// and in sandboxes, by the same user, on copies of the same files: each of
// their tests must end alike, except those that [known] explains.
func TestSuite(t *testing.T) {
	dir := source(t)
	names := scripts(t, dir)
	s := prepare(t, dir)
	s.layers(t)
	var tests, skipped, explained, layered atomic.Int64
	// The group returns when all of its parallel parts have ended.
	t.Run("scripts", func(t *testing.T) {
		for _, name := range names {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				outside := s.outside(t, name)
				tests.Add(int64(len(outside.Tests)))
				for _, state := range outside.Tests {
					if state == gitsuite.Skipped {
						skipped.Add(1)
					}
				}
				for _, box := range boxes(name) {
					if box == joined {
						layered.Add(1)
					}
					differences := gitsuite.Compare(outside, s.inside(t, box, name))
					for _, number := range vanished(name, differences) {
						t.Errorf("%s %d ends alike in %s now: take it from the table", name, number, box)
					}
					for _, difference := range differences {
						if reason := explain(name, difference); reason != "" {
							explained.Add(1)
							t.Logf("%s in %s %v: %s", name, box, difference, reason)
							continue
						}
						t.Errorf("%s in %s %v", name, box, difference)
					}
				}
			})
		}
	})
	t.Logf("%d scripts with %d tests, of which %d are skipped on this machine; %d scripts also above layers; %d tests end differently inside for a known reason",
		len(names), tests.Load(), skipped.Load(), layered.Load(), explained.Load())
}

// suite is the place where the two sides run.
type suite struct {
	host *program.Host
	copy string // the files outside
	user *syscall.Credential
}

// prepare puts the source into a repository with a sandbox, and into a copy
// whose path is as long: the length of a path matters to sockets.
func prepare(t *testing.T, dir string) *suite {
	h := built.New(t)
	s := &suite{host: h, copy: filepath.Join(filepath.Dir(h.Repo), "outside")}
	must := func(argv ...string) string {
		t.Helper()
		got := h.Command(h.Dir, argv[0], argv[1:]...)
		if got.Code != 0 {
			t.Fatalf("%q exited %d:\n%s%s", argv, got.Code, got.Stdout, got.Stderr)
		}
		return strings.TrimSpace(got.Stdout)
	}
	must("cp", "-r", dir, s.copy)
	must("cp", "-r", dir+"/.", h.Repo)
	// Files built there are ignored, but belong in it.
	h.Git("add", "--force", "--all")
	h.Git("commit", "--quiet", "-m", "The source of git")
	h.Must("create", plain)
	if os.Getuid() != 0 {
		return s
	}
	// Root's sandbox has an ordinary user inside, for whom the suite runs
	// other tests than for root.
	id := func(flag string) uint32 {
		n, err := strconv.ParseUint(h.Must("exec", plain, "--no-commit", "--", "id", flag), 10, 32)
		if err != nil {
			t.Fatal(err)
		}
		return uint32(n)
	}
	s.user = &syscall.Credential{Uid: id("-u"), Gid: id("-g")}
	must("chown", "-R", strconv.Itoa(int(s.user.Uid))+":"+strconv.Itoa(int(s.user.Gid)), s.copy)
	for _, path := range []string{h.Dir, filepath.Dir(h.Dir)} {
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// argv runs a script with nothing of the caller's environment. What a failed
// script leaves behind is removed.
func argv(name string) []string {
	git, err := exec.LookPath("git")
	if err != nil {
		git = "/usr/bin/git"
	}
	return []string{
		"env", "-i", "PATH=/usr/bin:/bin", "TERM=dumb", "HOME=/nonexistent", "SHELL=/bin/sh",
		"GIT_TEST_INSTALLED=" + filepath.Dir(git), "TEST_NO_MALLOC_CHECK=1",
		"sh", "-c", `umask 022; sh ./"$1".sh --no-color; code=$?; chmod -R u+rwX "trash directory.$1" 2>/dev/null; rm -rf "trash directory.$1"; exit $code`,
		"sh", name,
	}
}

func (s *suite) outside(t *testing.T, name string) gitsuite.Outcome {
	t.Helper()
	return s.run(t, "outside", filepath.Join(s.copy, "t"), s.user, argv(name))
}

func (s *suite) inside(t *testing.T, box, name string) gitsuite.Outcome {
	t.Helper()
	return s.run(t, "inside "+box, s.host.Repo, nil,
		append([]string{s.host.Program("litterbox"), "exec", box, "--no-commit", "-w", "t", "--"}, argv(name)...))
}

func (s *suite) run(t *testing.T, side, dir string, user *syscall.Credential, argv []string) gitsuite.Outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	var stdout, stderr bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, s.host.Env, &stdout, &stderr
	// litterbox ends what it runs inside; outside the group is ended for it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: user, Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	// Processes that a script leaves running must not hold up the test.
	cmd.WaitDelay = 10 * time.Second
	started := time.Now()
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		t.Errorf("%s %s did not end within %v", side, t.Name(), limit)
	case err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay):
		t.Fatalf("cannot run %s %q: %v", side, argv, err)
	case exit != nil && exit.ExitCode() == 125:
		t.Errorf("%s: %s", side, stderr.String())
	}
	outcome := gitsuite.Read(stdout.String())
	t.Logf("%s: %d of %d tests in %v", side, len(outcome.Tests), outcome.Plan, time.Since(started).Round(100*time.Millisecond))
	if outcome.Plan < 0 {
		t.Logf("%s:\n%s", side, last(cmp.Or(stderr.String(), stdout.String())))
	}
	return outcome
}

// last returns the last lines of a text.
func last(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-10):], "\n")
}
