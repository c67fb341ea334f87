package crash_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/frozen"
	"github.com/litterbox-sandbox/litterbox/test/program"
)

// state returns the parts of a sandbox that a snapshot has: a tracked file, an
// ignored one and one of HOME, in the same state or not.
func state(h *program.Host, box string) string {
	h.Helper()
	got := h.Inside(box, "cat", "file", "build/ignored", h.Home+"/note")
	if got.Code != 0 {
		h.Errorf("%s holds no whole state: %s%s", box, got.Stdout, got.Stderr)
	}
	lines := strings.Fields(got.Stdout)
	if len(lines) != 3 || lines[0] != lines[1] || lines[1] != lines[2] {
		h.Errorf("%s holds parts of several states: %q", box, lines)
		return ""
	}
	return lines[0]
}

func write(h *program.Host, box, what string) {
	h.Helper()
	h.Must("exec", box, "--", "sh", "-c", "mkdir -p build; echo build/ >.gitignore; echo "+what+" | tee file build/ignored >~/note")
}

func TestSnapshot(t *testing.T) {
	everyStep(t, change{before: func(h *program.Host, n int) (string, []string) {
		if n == 1 {
			h.Must("create", "box")
		}
		write(h, "box", fmt.Sprint("state", n))
		if n%2 == 0 {
			h.Must("stop", "box")
		}
		return "", []string{"snapshot", "box", fmt.Sprint("label", n)}
	}, after: func(h *program.Host, n int) {
		if got := state(h, "box"); got != fmt.Sprint("state", n) {
			h.Errorf("after a snapshot it is in state %q", got)
		}
		h.Must("exec", "box", "--", "true")
		holds(h, "box", "file", fmt.Sprintf("state%d\n", n))
		h.Must("snapshot", "box", fmt.Sprint("again", n))
		h.Must("exec", "box", "--", "sh", "-c", "rm -r build ~/note; echo later >file")
		h.Must("stop", "box")
		h.Must("restore", "box", fmt.Sprint("again", n))
		if got := state(h, "box"); got != fmt.Sprint("state", n) {
			h.Errorf("the snapshot after it is of state %q", got)
		}
	}})
}

func TestRestoreSnapshot(t *testing.T) {
	everyStep(t, change{before: func(h *program.Host, n int) (string, []string) {
		if n == 1 {
			h.Must("create", "box")
		}
		write(h, "box", fmt.Sprint("old", n))
		h.Must("snapshot", "box", fmt.Sprint("old", n))
		write(h, "box", fmt.Sprint("new", n))
		h.Must("stop", "box")
		return "", []string{"restore", "box", fmt.Sprint("old", n)}
	}, after: func(h *program.Host, n int) {
		before, restored := fmt.Sprint("new", n), fmt.Sprint("old", n)
		got := state(h, "box")
		if got != before && got != restored {
			h.Errorf("it is in state %q, neither before nor after", got)
		}
		h.Must("exec", "box", "--", "true")
		holds(h, "box", "file", got+"\n")
		h.Must("stop", "box")
		h.Must("restore", "box", fmt.Sprint("old", n))
		if got := state(h, "box"); got != restored {
			h.Errorf("restored again, it is in state %q", got)
		}
	}}) // nothing of it runs
}

func TestFork(t *testing.T) {
	everyStep(t, change{before: func(h *program.Host, n int) (string, []string) {
		if n == 1 {
			h.Must("create", "box")
		}
		write(h, "box", fmt.Sprint("state", n))
		if n%2 == 0 {
			h.Must("stop", "box")
		}
		return "", []string{"fork", "box", fmt.Sprint("fork", n)}
	}, after: func(h *program.Host, n int) {
		if got := state(h, "box"); got != fmt.Sprint("state", n) {
			h.Errorf("after a fork the first one is in state %q", got)
		}
		name := fmt.Sprint("fork", n)
		if !strings.Contains(h.Must("list"), name+" ") {
			h.Must("fork", "box", name)
		}
		if h.Litterbox("status", name).Code != 0 { // half-made: the next command of that name removes it
			h.Must("fork", "box", name)
		}
		if got := state(h, name); got != fmt.Sprint("state", n) {
			h.Errorf("the fork is in state %q", got)
		}
		if listed := h.Must("snapshots", "box"); strings.Contains(listed, "(fork)") {
			h.Errorf("what the fork began with is still there:\n%s", listed)
		}
		h.Must("delete", "--force", "--purge", name)
		if got := state(h, "box"); got != fmt.Sprint("state", n) {
			h.Errorf("without its fork the first one is in state %q", got)
		}
	}})
}

// A snapshot that must join the layers first, which happens once in a while.
func TestSnapshotThatJoins(t *testing.T) {
	here(t) // it counts layers by their files
	everyStep(t, change{before: func(h *program.Host, n int) (string, []string) {
		if n == 1 {
			h.Must("create", "box")
			write(h, "box", "deep")
			h.Must("stop", "box")
			h.Must("snapshot", "box")
			h.Stack("box", frozen.MaxStack-1, "echo $1 >build/layer$1; mkdir -p build/dir; rm -rf build/dir; mkdir build/dir; echo $1 >build/dir/$1")
		}
		h.Must("restore", "box", fmt.Sprint("s", frozen.MaxStack), "--stop")
		if on := h.Layers("box"); on != frozen.MaxStack {
			h.Fatalf("it stands on %d layers, and not on %d", on, frozen.MaxStack)
		}
		write(h, "box", fmt.Sprint("state", n))
		h.Must("stop", "box")
		return "", []string{"snapshot", "box", fmt.Sprint("label", n)}
	}, after: func(h *program.Host, n int) {
		layers := func() {
			h.Helper()
			got := h.Inside("box", "sh", "-c", "ls build/layer* | wc -l; ls build/dir; cat build/dir/*")
			if want := fmt.Sprintf("%d\n%[2]d\n%[2]d\n", frozen.MaxStack-1, frozen.MaxStack-2); got.Stdout != want {
				h.Errorf("the layers hold %q, and not %q", got.Stdout, want)
			}
		}
		if got := state(h, "box"); got != fmt.Sprint("state", n) {
			h.Errorf("after a snapshot it is in state %q", got)
		}
		layers()
		h.Must("stop", "box")
		h.Must("snapshot", "box", fmt.Sprint("again", n))
		if on := h.Layers("box"); on > 2 {
			h.Errorf("it stands on %d layers, which were not joined", on)
		}
		h.Must("restore", "box", fmt.Sprint("again", n))
		if got := state(h, "box"); got != fmt.Sprint("state", n) {
			h.Errorf("the snapshot after it is of state %q", got)
		}
		layers()
	}})
}

// A rewind ended half-way can be made again, and what it left behind is still there.
func TestRewind(t *testing.T) {
	var iterations sync.Map // by the directory of a host: the one to go back to
	rewind := func(h *program.Host) []string {
		to, _ := iterations.Load(h.Dir)
		return []string{"rewind", "box", fmt.Sprint(to), "--stop"}
	}
	everyStep(t, change{box: box, few: true, before: func(h *program.Host, n int) (string, []string) {
		if n == 1 {
			h.Must("create", "box")
		}
		fill := func(what, link string) {
			h.Must("exec", "box", "--", "sh", "-c", fmt.Sprintf("for i in 1 2 3 4 5 6 7 8; do echo %[1]s%[2]d >f$i; done; echo %[1]s%[2]d >file; rm -f link; %[3]s", what, n, link))
		}
		fill("old", "ln -s file link")
		var log []struct{ Number int }
		if err := json.Unmarshal([]byte(h.Must("log", "box", "--json")), &log); err != nil || len(log) == 0 {
			h.Fatalf("no log: %v", err)
		}
		iterations.Store(h.Dir, log[len(log)-1].Number)
		fill("new", "cp file link")
		return "", rewind(h)
	}, after: func(h *program.Host, n int) {
		// Each file is whole, from one iteration or the other.
		half := strings.Fields(h.Inside("box", "cat", "file", "link", "f1", "f2", "f3", "f4", "f5", "f6", "f7", "f8").Stdout)
		for _, content := range half {
			if content != fmt.Sprint("old", n) && content != fmt.Sprint("new", n) {
				h.Errorf("a file is of neither iteration: %q", half)
			}
		}
		if len(half) != 10 {
			h.Errorf("not every file is there: %q", half)
		}
		h.Must(rewind(h)...)
		old := fmt.Sprintf("old%d\n", n)
		if got := h.Inside("box", "cat", "file"); got.Stdout != old {
			h.Errorf("rewound again, it holds %q, and not %q", got.Stdout, old)
		}
		holds(h, "box", "file", old)
		if h.Git("log", "--all", "--format=%h", "-S", fmt.Sprint("new", n)) == "" {
			h.Error("what the rewind left behind is in no commit")
		}
	}})
}

func TestSnapshotDelete(t *testing.T) {
	everyStep(t, change{few: true, before: func(h *program.Host, n int) (string, []string) {
		if n == 1 {
			h.Must("create", "box")
		}
		for _, what := range []string{"gone", "kept"} {
			write(h, "box", fmt.Sprint(what, n))
			h.Must("snapshot", "box", fmt.Sprint(what, n))
		}
		return "", []string{"snapshot", "delete", "box", fmt.Sprint("gone", n)}
	}, after: func(h *program.Host, n int) {
		if gone := fmt.Sprint("gone", n); strings.Contains(h.Must("snapshots", "box"), gone) {
			h.Must("snapshot", "delete", "box", gone)
		}
		h.Must("restore", "box", fmt.Sprint("kept", n), "--stop")
		if got := state(h, "box"); got != fmt.Sprint("kept", n) {
			h.Errorf("the other snapshot is of state %q", got)
		}
	}})
}
