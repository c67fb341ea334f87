// Package versions_test uses sandboxes that another version of litterbox has
// started and keeps: each command of this version on a sandbox of the next one,
// and vice versa. The next one is this program with the build tag nextwire,
// which counts the version of the wire up.
package versions_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/test/program"
)

var built *program.Built

func TestMain(m *testing.M) {
	var failed error
	code := program.Main(m, func(b *program.Built) {
		built = b
		failed = b.Variant("next", "nextwire")
	})
	if failed != nil {
		fmt.Fprintln(os.Stderr, failed)
		code = 1
	}
	os.Exit(code)
}

// pair is a host with two versions of litterbox: one has started the sandboxes,
// the other one comes later.
type pair struct {
	*program.Host
	first, later string
}

// each runs a test in both directions.
func each(t *testing.T, test func(t *testing.T, p pair)) {
	t.Parallel()
	for _, names := range [][2]string{{"litterbox", "next"}, {"next", "litterbox"}} {
		t.Run(names[0]+" first", func(t *testing.T) {
			t.Parallel()
			h := built.New(t)
			test(t, pair{h, h.Program(names[0]), h.Program(names[1])})
		})
	}
}

// use runs one of the programs, which must succeed.
func (p pair) use(which string, args ...string) string {
	p.Helper()
	got := p.Command(p.Repo, which, args...)
	if got.Code != 0 {
		p.Fatalf("%s %q: %+v", filepath.Base(which), args, got)
	}
	return got.Stdout
}

// told fails unless the later program says that it cannot, and what to type.
func (p pair) told(args ...string) {
	p.Helper()
	got := p.Command(p.Repo, p.later, args...)
	code := 6 // unsupported
	if args[0] == "exec" {
		code = 125
	}
	if got.Code != code || !strings.Contains(got.Stderr, `sandbox "box" was started by another version of litterbox`) ||
		!strings.HasSuffix(got.Stderr, "\n  try: litterbox stop box\n") {
		p.Errorf("%q: %+v", args, got)
	}
}

// over fails unless the processes end, and their mounts with them.
func (p pair) over(pids ...int) {
	p.Helper()
	for _, pid := range pids {
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
			stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			if err != nil || strings.Contains(string(stat), ") Z ") {
				break
			}
			if time.Now().After(deadline) {
				p.Fatalf("process %d still runs", pid)
			}
		}
	}
	if mounts, err := os.ReadFile("/proc/mounts"); err != nil || strings.Contains(string(mounts), p.State) {
		p.Errorf("still mounted: %s, %v", mounts, err)
	}
}

// kept fails unless the branch and the sandbox, used by the program, have the
// files, each with its own name as content.
func (p pair) kept(which string, files ...string) {
	p.Helper()
	for _, file := range files {
		if got := p.Command(p.Repo, "git", "show", "box:"+file); got.Stdout != file+"\n" {
			p.Errorf("%s on the branch: %+v", file, got)
		}
	}
	want := strings.Join(files, "\n") + "\n"
	if got := p.use(which, append([]string{"exec", "box", "--", "cat"}, files...)...); got != want {
		p.Errorf("inside are %q, want %q", got, want)
	}
}

const configuration = `
[container]
ports = ["web"]

[container.services.sleeper]
command = ["sleep", "1000"]
`

// Commands that need only the records work; all others say what to type, and
// change nothing.
func TestEachCommand(t *testing.T) {
	each(t, func(t *testing.T, p pair) {
		p.Put(filepath.Join(p.Repo, ".litterbox.toml"), configuration)
		p.use(p.first, "trust")
		p.use(p.first, "create", "box")
		p.use(p.first, "exec", "box", "--", "sh", "-c", "echo one >one")
		p.use(p.first, "exec", "box", "--no-commit", "--", "sh", "-c", "echo two >two")
		keeper, guest := p.MustProcesses("box")

		for _, args := range [][]string{
			{"exec", "box", "--", "true"}, {"write", "box", "file"}, {"read", "box", "one"}, {"cp", "README", "box:copy"}, {"cp", "box:one", "copy"},
			{"pause", "box"}, {"limits", "box", "memory=700MiB"}, {"allow", "box", "example.com"}, {"allow", "box", "example.com", "--pause"},
			{"deny", "box", "example.com"}, {"network", "box"}, {"service", "box"}, {"service", "box", "restart", "sleeper"},
		} {
			p.told(args...)
		}
		for _, at := range []struct {
			args []string
			says string
		}{
			{[]string{"list"}, "running"}, {[]string{"start", "box"}, "box is running already"}, {[]string{"status", "box"}, "try: litterbox stop box"}, {[]string{"log", "box"}, "echo one"}, {[]string{"diff", "box"}, "+one"},
			{[]string{"ports", "box"}, "web"}, {[]string{"limits", "box"}, "pids"}, {[]string{"events"}, "started"}, {[]string{"metrics"}, "litterbox_sandbox_memory_bytes{"},
			{[]string{"resume", "box"}, "not paused"}, {[]string{"prune"}, ""}, {[]string{"doctor", "--fix"}, ""},
		} {
			if got := p.use(p.later, at.args...); !strings.Contains(got, at.says) || strings.Contains(got, "left behind") {
				t.Errorf("%q says %s", at.args, got)
			}
		}
		if got := p.use(p.first, "network", "box"); !strings.Contains(got, "revision 1,") || strings.Contains(got, "example.com") {
			t.Errorf("the policy changed: %s", got)
		}
		if got := p.use(p.first, "limits", "box"); strings.Contains(got, "700") {
			t.Errorf("the limits changed: %s", got)
		}
		p.use(p.first, "exec", "box", "--", "sh", "-c", "echo three >three")
		if k, g := p.MustProcesses("box"); k != keeper || g != guest {
			t.Errorf("keeper and guest are %d and %d, were %d and %d", k, g, keeper, guest)
		}

		p.use(p.later, "stop", "box")
		p.over(keeper, guest)
		p.kept(p.later, "one", "two", "three")
		p.use(p.later, "service", "box", "restart", "sleeper")
	})
}

// Milestones and merges need no keeper of the sandbox.
func TestApply(t *testing.T) {
	each(t, func(t *testing.T, p pair) {
		p.use(p.first, "create", "box")
		p.use(p.first, "exec", "box", "--", "sh", "-c", "echo one >one")
		p.use(p.first, "exec", "box", "--no-commit", "--", "sh", "-c", "echo two >two")
		p.use(p.later, "milestone", "box", "-m", "both")
		p.use(p.later, "apply", "box", "--no-edit")
		if got := p.Git("show", "main:one") + p.Git("show", "main:two"); got != "onetwo" {
			t.Errorf("applied is %q", got)
		}
		p.kept(p.first, "one", "two")
		keeper, guest := p.MustProcesses("box")
		p.use(p.later, "merge", "box", "--no-edit") // deletes it, too
		p.over(keeper, guest)
	})
}

// A paused sandbox can be stopped, and does not go on by itself.
func TestPaused(t *testing.T) {
	each(t, func(t *testing.T, p pair) {
		p.use(p.first, "create", "box")
		p.use(p.first, "exec", "box", "--", "sh", "-c", "echo one >one")
		p.use(p.first, "pause", "box")
		p.told("resume", "box")
		if got := p.Command(p.Repo, p.later, "exec", "box", "--", "true"); got.Code != 125 || !strings.Contains(got.Stderr, "is paused") {
			t.Errorf("exec: %+v", got)
		}
		if got := p.use(p.later, "list"); !strings.Contains(got, "paused") {
			t.Errorf("%s", got)
		}
		keeper, guest := p.MustProcesses("box")
		p.use(p.later, "stop", "box")
		p.over(keeper, guest)
		p.kept(p.later, "one")
	})
}

// A keeper does not follow one of another version: the guest is of that, too.
func TestKeeperDies(t *testing.T) {
	each(t, func(t *testing.T, p pair) {
		p.use(p.first, "create", "box")
		p.use(p.first, "exec", "box", "--", "sh", "-c", "echo one >one")
		p.use(p.first, "exec", "box", "--no-commit", "--", "sh", "-c", "echo two >two")
		keeper, guest := p.MustProcesses("box")
		if err := syscall.Kill(keeper, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		p.over(keeper)
		p.told("exec", "box", "--", "true")
		p.told("start", "box")
		p.use(p.first, "exec", "box", "--", "true") // its own version does
		if keeper, _ = p.MustProcesses("box"); syscall.Kill(keeper, syscall.SIGKILL) != nil {
			t.Errorf("keeper %d did not follow", keeper)
		}
		p.over(keeper)
		p.use(p.later, "stop", "box")
		p.over(guest)
		p.kept(p.later, "one", "two")
	})
}

// A deletion ends a sandbox that another version has started, and keeps the commits.
func TestDelete(t *testing.T) {
	each(t, func(t *testing.T, p pair) {
		p.use(p.first, "create", "box")
		p.use(p.first, "exec", "box", "--", "sh", "-c", "echo one >one")
		p.use(p.first, "exec", "box", "--no-commit", "--", "sh", "-c", "echo two >two")
		keeper, guest := p.MustProcesses("box")
		p.use(p.later, "delete", "--force", "box")
		p.over(keeper, guest)
		trash := p.Git("for-each-ref", "--format=%(refname)", "refs/litterbox/trash/box-*")
		for _, file := range []string{"one", "two"} {
			if got := p.Git("show", trash+":"+file); got != file {
				t.Errorf("%s is %q", file, got)
			}
		}
		if left, _ := filepath.Glob(filepath.Join(p.State, "litterbox/sandboxes/*")); left != nil {
			t.Errorf("left are %q", left)
		}
	})
}
