package cgroup_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/driver/namespace/cgroup"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// The files are plain ones: the test only covers reads and requests, so that it
// can run on every machine.
func TestTakenControllersAreAskedFor(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "litterbox-one")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	put := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	control := filepath.Join(parent, "cgroup.subtree_control")
	put(control, "memory pids\n")
	g := &cgroup.Group{Parts: []cgroup.Part{{Version: 2, Dir: dir, Controllers: []string{"memory", "pids", "cpu", "freezer", "cpuacct"}}}}

	put(filepath.Join(dir, "cgroup.controllers"), "cpu memory pids\n")
	if !g.Whole() {
		t.Error("something is missing although everything is there")
	}
	put(filepath.Join(dir, "cgroup.controllers"), "memory pids\n")
	if g.Whole() {
		t.Error("nobody notices that cpu was taken away")
	}
	for _, file := range []string{"memory.max", "memory.swap.max", "pids.max", "cpu.max"} {
		put(filepath.Join(dir, file), "")
	}
	if _, err := g.Set(sandbox.Limits{CPUs: 0.5}, dir); err != nil {
		t.Fatal(err)
	}
	asked, err := os.ReadFile(control)
	if err != nil || string(asked) != "+cpu" {
		t.Errorf("the parent was asked for %q, %v; want +cpu", asked, err)
	}
	if quota, err := os.ReadFile(filepath.Join(dir, "cpu.max")); err != nil || string(quota) != "50000 100000" {
		t.Errorf("the limit is %q, %v", quota, err)
	}
}
