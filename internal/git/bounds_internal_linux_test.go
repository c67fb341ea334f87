package git

import (
	"context"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// standIn replaces git with a script.
func standIn(t *testing.T, script string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "git"), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	return dir
}

func TestGitIsBounded(t *testing.T) {
	// What it was started as can be older than its limits: they come after.
	const wait = "until grep -q '^Max core file size *0 ' /proc/$$/limits; do :; done\n"
	dir := standIn(t, wait+"awk '/^Max (cpu time|data size)/ { print $(NF-2) }' /proc/$$/limits\n")
	got, err := Command{Dir: dir, Args: []string{"diff-tree"}}.Output(t.Context())
	if want := strconv.Itoa(int(gitTime.Seconds())) + "\n" + strconv.Itoa(GitMemory) + "\n"; err != nil || string(got) != want {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
}

func TestGitPastItsBounds(t *testing.T) {
	for name, test := range map[string]struct {
		script string
		tight  Bounds
		want   string
	}{
		"processor": {"while :; do :; done\n", Bounds{time: time.Second}, "needs more than 1s of a processor"},
		"output":    {"while :; do echo 123456789; done\n", Bounds{output: 1 << 20}, "prints more than 1048576 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := standIn(t, test.script)
			_, err := Command{Dir: dir, Tight: test.tight, Args: []string{"diff-tree"}}.Output(t.Context())
			if err == nil || !strings.Contains(err.Error(), test.want) || fault.KindOf(err) != fault.Denied {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}

// A Ctrl-C on the terminal reaches all of a process group, also what has just been
// forked in it. The group is one of the test's own.
func TestCtrlCWhileGitStarts(t *testing.T) {
	const inside = "LITTERBOX_TEST_CTRL_C"
	if os.Getenv(inside) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1")
		cmd.Env = append(os.Environ(), inside+"=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGINT)
	done := make(chan struct{})
	defer close(done)
	go func() {
		for {
			select {
			case <-done:
				return
			default:
				_ = syscall.Kill(0, syscall.SIGINT)
			}
		}
	}()
	for range 50 {
		if _, err := (Command{Dir: t.TempDir(), Args: []string{"version"}}).Output(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if len(caught) == 0 {
		t.Error("there was no Ctrl-C")
	}
}

// treeBomb makes ten levels of ten entries, by files and by nothing at all, and
// prints the tree of the files.
const treeBomb = `set -e
blob=$(git hash-object -w --stdin </dev/null)
level() { for n in 0 1 2 3 4 5 6 7 8 9; do printf '%s %s\t%s\n' "$1" "$2" "$n"; done | git mktree; }
tree=$(level '100644 blob' "$blob")
for n in 1 2 3 4 5 6 7 8 9; do tree=$(level '040000 tree' "$tree"); done
echo "$tree"
`

// The same tree that expansion counts is too much for git: without a limit it
// takes all of the machine's memory.
func TestTreeBombMeetsTheLimitOfMemory(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command("sh", "-c", "git init -q . && cd .git && git mktree </dev/null && "+treeBomb)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	trees := strings.Fields(string(out))
	c := Command{GitDir: filepath.Join(dir, ".git"), Private: true, Tight: Bounds{Memory: 128 << 20, time: time.Minute}}
	_, err = diffTrees(t.Context(), c, trees[0], trees[1])
	if err == nil || !strings.Contains(err.Error(), "git diff-tree needs more than 134217728 bytes of memory") || fault.KindOf(err) != fault.Denied {
		t.Errorf("%v", err)
	}
}

// An abandoned git ends with all that it has started.
func TestGitEndsAsAGroup(t *testing.T) {
	dir := standIn(t, "sleep 1000 >/dev/null 2>&1 &\necho $!\nwait\n")
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := Command{Dir: dir, Stdout: write, Args: []string{"diff-tree"}}.Output(ctx)
		ended <- err
	}()
	line := make([]byte, 32)
	n, err := read.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(string(line[:n])))
	if err != nil {
		t.Fatal(err)
	}
	stop()
	if err := <-ended; fault.KindOf(err) != fault.Canceled {
		t.Errorf("%v", err)
	}
	if err := write.Close(); err != nil {
		t.Fatal(err)
	}
	// Killed, it may be a zombie for as long as its new parent likes.
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(child) + "/stat")
	for end := time.Now().Add(time.Minute); err == nil && !strings.Contains(string(stat), ") Z "); {
		if time.Now().After(end) {
			_ = syscall.Kill(child, syscall.SIGKILL)
			t.Fatalf("what git has started goes on: %s", stat)
		}
		stat, err = os.ReadFile("/proc/" + strconv.Itoa(child) + "/stat")
	}
}

// transacting is the variable that has the test program change a ref, with the git in
// PATH.
const transacting = "LITTERBOX_TEST_TRANSACTING"

// A git that changes refs ends with its caller: what it wrote later would be nobody's.
func TestTransactionsEndWithTheirCaller(t *testing.T) {
	if dir := os.Getenv(transacting); dir != "" {
		r := &Repository{Location: Location{GitDir: dir, CommonDir: dir}}
		t.Fatal(r.UpdateRefs(t.Context(), "cannot", "wait", "create refs/heads/x\x00"+strings.Repeat("1", 40)+"\x00"))
	}
	dir := standIn(t, `exec 2>&-; echo $$ >"$GIT_DIR/pid.new"; mv "$GIT_DIR/pid.new" "$GIT_DIR/pid"; exec sleep 1000`+"\n")
	caller := exec.Command(os.Args[0], "-test.run", "^TestTransactionsEndWithTheirCaller$")
	caller.Env = append(os.Environ(), transacting+"="+dir)
	if err := caller.Start(); err != nil {
		t.Fatal(err)
	}
	var pid []byte
	for end := time.Now().Add(time.Minute); len(pid) == 0; pid, _ = os.ReadFile(filepath.Join(dir, "pid")) {
		if time.Now().After(end) {
			t.Fatal("git was never started")
		}
	}
	if err := caller.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = caller.Wait() // killed
	stat := filepath.Join("/proc", strings.TrimSpace(string(pid)), "stat")
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		// Killed, it may be a zombie for as long as its new parent likes.
		if content, err := os.ReadFile(stat); err != nil || strings.Contains(string(content), ") Z ") {
			return
		}
		if time.Now().After(end) {
			t.Fatal("git goes on")
		}
	}
}
