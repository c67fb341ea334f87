package cgroup_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/driver/namespace/cgroup"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// sleeper runs in a group until the test ends.
func sleeper(t *testing.T, g *cgroup.Group) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("/bin/sleep", "600")
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if err := g.Start(cmd.SysProcAttr, cmd.Start); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // most are dead by then
		_ = cmd.Wait()
	})
	return cmd
}

// keepBusy puts a process into a group below each part, where no start looks
// for what it may kill.
func keepBusy(t *testing.T, g *cgroup.Group) {
	t.Helper()
	child := sleeper(t, g)
	for _, part := range g.Parts {
		dir := filepath.Join(part.Dir, "held")
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(child.Process.Pid)), 0); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = child.Process.Kill()
			_, _ = child.Process.Wait()
			await(t, dir+" to be removed", func() bool {
				err := os.Remove(dir)
				return err == nil || errors.Is(err, os.ErrNotExist)
			})
			_ = os.Remove(filepath.Join(part.Dir, "inside"))
			if err := os.Remove(part.Dir); err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Error(err)
			}
		})
	}
}

// A start whose group was left with processes kills them and takes the name.
func TestALeftoversProcessesAreKilled(t *testing.T) {
	eachVersion(t, func(t *testing.T, where []cgroup.Hierarchy) {
		name := "litterbox-test-killed-" + strconv.Itoa(os.Getpid())
		for _, again := range map[string]func() error{
			"make": func() error {
				g, err := cgroup.Make(where, name, sandbox.Limits{})
				return errors.Join(err, g.Remove())
			},
			"sweep": func() error { return cgroup.Sweep(where, name) },
		} {
			left, err := cgroup.Make(where, name, sandbox.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			child := sleeper(t, left)
			if cgroup.CanFreeze(where) {
				if err := left.Freeze(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			ended := make(chan error, 1)
			go func() { ended <- child.Wait() }()
			if err := again(); err != nil {
				t.Error(err)
			}
			if err := <-ended; err == nil || !strings.Contains(err.Error(), "killed") {
				t.Errorf("what ran in the leftover ended with %v", err)
			}
			for _, part := range left.Parts {
				if _, err := os.Stat(part.Dir); !os.IsNotExist(err) {
					t.Errorf("%s is left: %v", part.Dir, err)
				}
			}
		}
	})
}

// A group that stays busy keeps no start from having one.
func TestABusyLeftoverIsLeft(t *testing.T) {
	eachVersion(t, func(t *testing.T, where []cgroup.Hierarchy) {
		t.Parallel() // it waits
		const id = "busy-0a1b2c3d"
		prefix := "litterbox-test-" + strconv.Itoa(os.Getpid()) + "-"
		left, err := cgroup.Make(where, prefix+id, sandbox.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		keepBusy(t, left)
		next, err := cgroup.Make(where, prefix+id, sandbox.Limits{})
		if err != nil {
			t.Fatalf("a busy group keeps the next from being made: %v", err)
		}
		child := sleeper(t, next)
		for _, part := range next.Parts {
			if _, err := os.Stat(part.Dir); err != nil {
				t.Error(err)
			}
		}
		if found := cgroup.Of(child.Process.Pid, prefix+id); len(found.Parts) != len(next.Parts) {
			t.Errorf("the process is found in %+v, want %+v", found, next)
		}
		if err := child.Process.Kill(); err != nil {
			t.Error(err)
		}
		_ = child.Wait()
		// What nothing runs in is found as a leftover, by the sandbox's id.
		for _, empty := range cgroup.Empty(where, prefix, 0) {
			if empty.Name != prefix+id || !empty.Spare {
				t.Errorf("%+v is no spare group of %s", empty, id)
			}
		}
		if found := cgroup.Empty(where, prefix, 0); len(found) < len(next.Parts) {
			t.Errorf("%+v does not contain each of %+v", found, next.Parts)
		}
		if err := next.Remove(); err != nil {
			t.Error(err)
		}
		if err := cgroup.Sweep(where, prefix+id); err != nil {
			t.Errorf("a sweep fails for a busy group: %v", err)
		}
	})
}
