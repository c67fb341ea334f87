package namespace

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// Where no freezer may be used, a place is stopped by SIGSTOP, from the host:
// parents before children, so that no parent sees a child stop and draws
// conclusions (a shell takes its terminal back), and children before parents
// when they go on. The guest is the first to stop, so that nothing new begins.

// stopFile records, beside the place, that it was stopped and which processes
// were stopped before. It is written first: a place left half stopped by a
// crash can be told to go on.
const stopFile = "stopped.json"

type stopped struct {
	Guest  sandbox.Process `json:"guest"`
	Before []stoodStill    `json:"before"` // stopped by the sandbox itself: Ctrl-Z, a debugger
}

type stoodStill struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"`
}

// isStopped reports whether this very place was told to stop.
func isStopped(stateDir string, guest sandbox.Process) (stopped, bool) {
	var was stopped
	data, err := os.ReadFile(filepath.Join(stateDir, stopFile))
	if err != nil || json.Unmarshal(data, &was) != nil {
		return stopped{}, false
	}
	return was, was.Guest == guest
}

// stopAll stops every process of the place, or none when ctx ends first.
func stopAll(ctx context.Context, stateDir string, guest sandbox.Process) error {
	was, again := isStopped(stateDir, guest)
	if !again {
		was = stopped{Guest: guest}
		for _, t := range tree(guest.PID) {
			if t.State == 'T' {
				was.Before = append(was.Before, stoodStill{t.pid, t.Start})
			}
		}
		data, err := json.Marshal(was)
		if err == nil {
			err = replace(filepath.Join(stateDir, stopFile), data)
		}
		if err != nil {
			return err
		}
	}
	// Twice, because a list of running processes can miss one.
	for quiet := 0; quiet < 2; {
		moving := 0
		for _, t := range tree(guest.PID) {
			if t.still() {
				continue
			}
			moving++
			_ = unix.Kill(t.pid, unix.SIGSTOP) // it may be over
			awaitStill(ctx, t.pid)
		}
		switch {
		case moving == 0:
			quiet++
		case ctx.Err() != nil:
			return errors.Join(ctx.Err(), continueAll(stateDir, guest))
		default:
			quiet = 0
		}
	}
	return nil
}

// stillPatience is how long a stop waits for one process before it turns to its
// children: a parent in vfork(2) does not stop before its child has gone on.
const stillPatience = 20 * time.Millisecond

func awaitStill(ctx context.Context, pid int) {
	deadline := time.Now().Add(stillPatience)
	for pause := 50 * time.Microsecond; ; pause *= 2 {
		t, ok := look(pid)
		if !ok || t.still() || ctx.Err() != nil || time.Now().After(deadline) {
			return
		}
		time.Sleep(pause)
	}
}

// continueAll resumes the processes that stopAll has stopped. It may be called
// again after a crash in the middle.
func continueAll(stateDir string, guest sandbox.Process) error {
	was, ok := isStopped(stateDir, guest)
	if !ok {
		return nil
	}
	all := tree(guest.PID)
	slices.SortStableFunc(all, func(a, b task) int { return b.depth - a.depth })
	for _, t := range all {
		if !slices.Contains(was.Before, stoodStill{t.pid, t.Start}) {
			_ = unix.Kill(t.pid, unix.SIGCONT)
		}
	}
	err := os.Remove(filepath.Join(stateDir, stopFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// replace writes a file in one step.
func replace(path string, data []byte) error {
	temp := path + ".new"
	if err := os.WriteFile(temp, data, 0o600); err != nil {
		return err
	}
	return os.Rename(temp, path)
}
