package namespace

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/process"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// family is a tree of processes in place of a guest's: a shell with children
// and grandchildren, one of which has stopped itself.
func family(t *testing.T) (guest sandbox.Process, stopped int) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "stopped")
	// Not on the test's context: that ends before the cleanup, which then could
	// not find the processes that the first one leaves.
	cmd := exec.Command("/bin/sh", "-c",
		`sleep 600 & sh -c 'sleep 601 & sleep 602; :' & sh -c 'echo $$ >"$0".new; mv "$0".new "$0"; kill -STOP $$; sleep 603' "$1" & wait`, "sh", file)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, one := range tree(cmd.Process.Pid) {
			if p, err := os.FindProcess(one.pid); err == nil {
				_ = p.Kill()
			}
		}
		_ = cmd.Wait() // killed
	})
	guest, err := process.Identify(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	await(t, "the family to be complete", func() bool {
		data, err := os.ReadFile(file)
		if err != nil {
			return false
		}
		stopped, _ = strconv.Atoi(strings.TrimSpace(string(data)))
		one, ok := look(stopped)
		return ok && one.State == 'T' && len(tree(guest.PID)) == 6
	})
	return guest, stopped
}

// await waits for an event that is sure to come.
func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("still waiting for %s", what)
		}
	}
}

// states counts the stopped processes below the guest.
func states(guest sandbox.Process) (still, all int) {
	for _, one := range tree(guest.PID) {
		all++
		if one.still() {
			still++
		}
	}
	return still, all
}

// For places without a freezer, which a machine that tests as root has.
func TestStopAndContinueBySignals(t *testing.T) {
	t.Parallel()
	guest, stopped := family(t)
	dir := t.TempDir()
	for range 2 { // again, as after a crash in the middle
		if err := stopAll(t.Context(), dir, guest); err != nil {
			t.Fatal(err)
		}
		if still, all := states(guest); still != all || all != 6 {
			t.Errorf("%d of %d processes stand still, want 6 of 6", still, all)
		}
		if _, ok := isStopped(dir, guest); !ok {
			t.Error("nobody else can see that it was stopped")
		}
	}
	if err := continueAll(dir, guest); err != nil {
		t.Fatal(err)
	}
	await(t, "all but one to go on", func() bool { still, all := states(guest); return still == 1 && all == 6 })
	if one, ok := look(stopped); !ok || one.State != 'T' {
		t.Errorf("the process that stood still before is %q", one.State)
	}
	if err := continueAll(dir, guest); err != nil {
		t.Errorf("a second time: %v", err)
	}
}

// A stop without time for all processes leaves none stopped.
func TestStopGivesUp(t *testing.T) {
	t.Parallel()
	guest, _ := family(t)
	dir := t.TempDir()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := stopAll(over, dir, guest); !errors.Is(err, context.Canceled) {
		t.Fatalf("stopping without time: %v", err)
	}
	await(t, "all but one to go on", func() bool { still, all := states(guest); return still == 1 && all == 6 })
	if _, ok := isStopped(dir, guest); ok {
		t.Error("it says that it was stopped")
	}
}

// Another process with the guest's number is another place.
func TestStopOfAnotherPlaceDoesNotCount(t *testing.T) {
	t.Parallel()
	guest, _ := family(t)
	dir := t.TempDir()
	if err := stopAll(t.Context(), dir, guest); err != nil {
		t.Fatal(err)
	}
	other := guest
	other.StartTime++
	if _, ok := isStopped(dir, other); ok {
		t.Error("it counts for a later process too")
	}
	if err := continueAll(dir, guest); err != nil {
		t.Fatal(err)
	}
}
