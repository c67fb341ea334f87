package cgroup_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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

// keepBusy puts a process that cannot be killed into the group: in version 1 a
// frozen one stays, and the group that freezes it is beside this group.
func keepBusy(t *testing.T, g *cgroup.Group) {
	t.Helper()
	freezers := slices.DeleteFunc(cgroup.Find(), func(h cgroup.Hierarchy) bool {
		return h.Version != 1 || !slices.Contains(h.Controllers, "freezer")
	})
	if len(freezers) == 0 {
		t.Skip("nothing here keeps a process from being killed")
	}
	child := sleeper(t, g)
	dir := filepath.Join(freezers[0].Parent, "litterbox-test-hold-v"+strconv.Itoa(g.Parts[0].Version)+"-"+filepath.Base(g.Parts[0].Dir))
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	// Before the others: the process ends, and its groups go.
	t.Cleanup(func() {
		_ = os.WriteFile(filepath.Join(dir, "freezer.state"), []byte("THAWED"), 0)
		_ = child.Process.Kill()
		_, _ = child.Process.Wait()
		for _, gone := range append(partDirs(g), dir) {
			await(t, gone+" to be removed", func() bool {
				_ = os.Remove(filepath.Join(gone, "inside"))
				err := os.Remove(gone)
				return err == nil || errors.Is(err, os.ErrNotExist)
			})
		}
	})
	put("cgroup.procs", strconv.Itoa(child.Process.Pid))
	put("freezer.state", "FROZEN")
	await(t, "the process to be frozen", func() bool {
		state, err := os.ReadFile(filepath.Join(dir, "freezer.state"))
		return err == nil && strings.TrimSpace(string(state)) == "FROZEN"
	})
}

func partDirs(g *cgroup.Group) []string {
	var dirs []string
	for _, part := range g.Parts {
		dirs = append(dirs, part.Dir)
	}
	return dirs
}

// Groups that the sandbox made below its own go with it, with their processes,
// regardless of names, depth and permissions.
func TestGroupsBelowAreRemoved(t *testing.T) {
	eachVersion(t, func(t *testing.T, where []cgroup.Hierarchy) {
		prefix := "litterbox-test-below-" + strconv.Itoa(os.Getpid()) + "-"
		const id = "below-0a1b2c3d"
		g, err := cgroup.Make(where, prefix+id, sandbox.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		child := sleeper(t, g)
		for _, part := range g.Parts {
			dir := part.Dir
			for range 50 {
				dir = filepath.Join(dir, "\xff deeper")
				for _, made := range []string{dir, dir + "-beside"} {
					if err := os.Mkdir(made, 0o755); err != nil {
						t.Fatal(err)
					}
				}
			}
			// The control: it cannot be removed by itself.
			if err := os.Remove(part.Dir); !errors.Is(err, syscall.EBUSY) {
				t.Errorf("%s with groups below it: %v", part.Dir, err)
			}
			if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(child.Process.Pid)), 0); err != nil {
				t.Fatal(err)
			}
			for ; dir != part.Dir; dir = filepath.Dir(dir) {
				if err := os.Chmod(dir, 0); err != nil {
					t.Fatal(err)
				}
			}
		}
		ended := make(chan error, 1)
		go func() { ended <- child.Wait() }()
		if err := g.Remove(); err != nil {
			t.Error(err)
		}
		if err := <-ended; err == nil || !strings.Contains(err.Error(), "killed") {
			t.Errorf("what ran below ended with %v", err)
		}
		for _, dir := range partDirs(g) {
			if _, err := os.Stat(dir); !os.IsNotExist(err) {
				t.Errorf("%s is left: %v", dir, err)
			}
		}
		// Left behind with empty groups below, it counts as empty.
		if g, err = cgroup.Make(where, prefix+id, sandbox.Limits{}); err != nil {
			t.Fatal(err)
		}
		for _, dir := range partDirs(g) {
			if err := os.MkdirAll(filepath.Join(dir, "one", "two"), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		found := cgroup.Empty(where, prefix, 0)
		if len(found) != len(g.Parts) {
			t.Errorf("empty: %+v, want each of %+v", found, g.Parts)
		}
		for _, empty := range found {
			if err := empty.Remove(); err != nil {
				t.Error(err)
			}
		}
	})
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
		// A group in which nothing runs is found as a leftover, by the sandbox's id.
		for _, empty := range cgroup.Empty(where, prefix, 0) {
			// The freezing group has taken the process out of the group's own freezer.
			frozen := strings.Contains(empty.Dir, "/freezer/")
			if empty.Name != prefix+id || !empty.Spare && !frozen {
				t.Errorf("%+v is not a spare group of %s", empty, id)
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
