package crash_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/test/program"
)

// state is what a sandbox holds that a snapshot has: a tracked file, an ignored
// one and one of HOME, in the same state or not.
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
		if h.Litterbox("status", name).Code != 0 { // half-made: the next command of that name clears it away
			h.Must("fork", "box", name)
		}
		if got := state(h, name); got != fmt.Sprint("state", n) {
			h.Errorf("the fork is in state %q", got)
		}
		h.Must("delete", "--force", "--purge", name)
		if got := state(h, "box"); got != fmt.Sprint("state", n) {
			h.Errorf("without its fork the first one is in state %q", got)
		}
	}})
}
