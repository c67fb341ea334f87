package crash_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/test/program"
	"github.com/litterbox-sandbox/litterbox/test/tracer"
)

var built *program.Built

func TestMain(m *testing.M) {
	os.Exit(program.Main(m, func(b *program.Built) { built = b }))
}

// patience bounds one command.
const patience = 2 * time.Minute

// killedAt runs litterbox and does what the target says: it kills the process that
// makes the step, the client, a git, the keeper or the guest, or makes the step
// fail. It returns which process it was; "" means that there were fewer steps.
func killedAt(h *program.Host, at tracer.Target, stdin string, args ...string) (who, output string) {
	h.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, h.Program("litterbox"), args...)
	cmd.Dir, cmd.Env = h.Repo, h.Env
	input, out := h.File(stdin), h.File("")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = input, out, out
	result := tracer.Run(cmd, at)
	printed, err := os.ReadFile(out.Name())
	if err = errors.Join(result.Err, err, input.Close(), out.Close()); err != nil {
		h.Fatalf("litterbox %q, step %d: %v\n%s", args, at.Step, err, printed)
	}
	return result.Program, string(printed)
}

// most bounds the steps of one operation; each of them has fewer.
const most = 1000

// next is the step after n to kill at. Many steps are alike, mounts above all;
// LITTERBOX_TEST_CRASH=all takes every one of them. Of the keeper's and the
// guest's own, and of operations that say so, the others take a few.
func (c change) next(n int, victim string) int {
	switch {
	case os.Getenv("LITTERBOX_TEST_CRASH") == "all", os.Getenv("LITTERBOX_TEST_FAULTS") == "all":
		return n + 1
	case c.few, os.Getenv(program.ElsewhereVariable) != "":
		return 4*n + 1
	case victim != "client":
		return 2*n + 1
	case n < 24:
		return n + 1
	}
	return n + 7
}

// A change is an operation, with what comes before each round of it and what
// must hold afterwards.
type change struct {
	before func(h *program.Host, n int) (stdin string, args []string)
	after  func(h *program.Host, n int)
	box    func(n int) string // the sandbox it is done to; nil if none runs before it
	few    bool               // its rounds take long: fewer of them unless all are requested
}

// box is the one sandbox of a test.
func box(int) string { return "box" }

// boxes returns one for each round.
func boxes(n int) string { return fmt.Sprintf("box%d", n) }

// everyStep carries out an operation with a kill at its first step, its second
// and so on, until nothing is killed anymore: at the steps of the client and of
// all that it starts, and if keeper and guest already run, at theirs.
func everyStep(t *testing.T, c change) {
	for _, victim := range victims() {
		if victim == "client" || c.box != nil {
			t.Run(victim, func(t *testing.T) {
				t.Parallel()
				c.rounds(t, victim, 0)
			})
		}
	}
	if os.Getenv("LITTERBOX_TEST_FAULTS") != "all" {
		return
	}
	for failure := 1; failure <= 3; failure++ {
		t.Run(fmt.Sprint("failure ", failure), func(t *testing.T) {
			t.Parallel()
			c.rounds(t, "client", failure)
		})
	}
}

// victims are the processes to kill. What a command starts is killed with "client",
// its own outposts and what they start among it.
func victims() []string {
	all := []string{"client", "keeper", "guest"}
	if os.Getenv(program.ElsewhereVariable) != "" {
		all = append(all, "outpost")
	}
	return all
}

// rounds does all rounds for one victim. With a failure, the steps fail
// instead, each of them once, with that one of its possible errors.
func (c change) rounds(t *testing.T, victim string, failure int) {
	h := built.Anywhere(t)
	h.Git("config", "gc.auto", "0") // processes that git merge starts in the background would outlive the test
	victims := map[string]int{}
	n := 1
	for ; ; n = c.next(n, victim) {
		stdin, args := c.before(h, n)
		at := tracer.Target{Step: n, Fail: failure}
		if victim != "client" {
			at.Of = []int{process(h, c.box(n), victim)}
		}
		who, output := killedAt(h, at, stdin, args...)
		t.Logf("step %d: killed %q", n, who)
		if strings.Contains(output, "goroutine ") {
			t.Errorf("the failure is none that was thought of:\n%s", output)
		}
		c.after(h, n)
		h.Fsck()
		if t.Failed() {
			t.Fatalf("after a kill of %s at step %d of litterbox %q, which printed:\n%s", who, n, args, output)
		}
		if who == "" {
			break
		}
		victims[who]++
		if n >= most {
			t.Fatalf("litterbox %q still makes steps after %d", args, most)
		}
	}
	t.Logf("%d steps; killed: %v", n-1, victims)
	if n < 3 && victim == "client" {
		t.Error("hardly anything was killed: the tracer does not do its work")
	}
	leavesNothing(h)
}

// here skips a test of what is not done in another machine.
func here(t *testing.T) {
	t.Helper()
	if os.Getenv(program.ElsewhereVariable) != "" {
		t.Skip("only with sandboxes on this machine")
	}
}

// process returns the keeper or the guest of a sandbox, or the outpost that its keeper
// speaks with.
func process(h *program.Host, box, victim string) int {
	h.Helper()
	keeper, guest := h.MustProcesses(box)
	switch victim {
	case "keeper":
		return keeper
	case "guest":
		return guest
	}
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		if found := outpostBelow(keeper); found != 0 {
			return found
		}
		if time.Now().After(end) {
			h.Fatalf("the keeper of %s has no outpost", box)
		}
	}
}

// outpostBelow returns the outpost that a process has started by ssh; 0 if there is none.
func outpostBelow(pid int) int {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, path := range tasks {
		children, _ := os.ReadFile(path) // it may have ended meanwhile
		for _, field := range strings.Fields(string(children)) {
			child, err := strconv.Atoi(field)
			if err != nil {
				continue
			}
			if args, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", child)); strings.Contains(string(args), "litterbox-guest\x00outpost\x00") {
				return child
			}
			if found := outpostBelow(child); found != 0 {
				return found
			}
		}
	}
	return 0
}

// leavesNothing fails unless doctor --fix clears all that killed commands have left.
// That counts as left behind from a certain age on, which something may reach
// between two looks.
func leavesNothing(h *program.Host) {
	h.Helper()
	left := ""
	for range 10 {
		h.Must("doctor", "--fix")
		if left = h.Must("doctor"); !strings.Contains(left, "left behind") {
			return
		}
	}
	h.Errorf("doctor --fix leaves something behind:\n%s", left)
}

// holds fails unless the file of the branch has exactly this content.
func holds(h *program.Host, branch, file, want string) {
	h.Helper()
	if got := h.Command(h.Repo, "git", "show", branch+":"+file); got.Code != 0 || got.Stdout != want {
		h.Errorf("%s:%s is %q (exit %d), want %q", branch, file, got.Stdout, got.Code, want)
	}
}
