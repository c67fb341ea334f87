package cgroup_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/driver/namespace/cgroup"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// eachVersion runs a test in the hierarchies of each version that this process
// may use: a hybrid machine has both.
func eachVersion(t *testing.T, test func(t *testing.T, where []cgroup.Hierarchy)) {
	found := cgroup.Find()
	if len(found) == 0 {
		if os.Geteuid() == 0 && strings.Contains(os.Getenv("LITTERBOX_TEST_REQUIRE"), "cgroup") {
			t.Fatal("LITTERBOX_TEST_REQUIRE demands control groups, and none may be made here")
		}
		t.Skip("no control group may be made here")
	}
	for _, version := range []int{1, 2} {
		where := slices.DeleteFunc(slices.Clone(found), func(h cgroup.Hierarchy) bool { return h.Version != version })
		t.Run("v"+strconv.Itoa(version), func(t *testing.T) {
			if len(where) == 0 {
				t.Skip("this machine has none of this version")
			}
			test(t, where)
		})
	}
}

// group makes a group with a process in it, for the duration of a test.
func group(t *testing.T, where []cgroup.Hierarchy, limits sandbox.Limits) (*cgroup.Group, *os.Process) {
	t.Helper()
	name := "litterbox-test-" + strconv.Itoa(os.Getpid()) + "-" + strings.ReplaceAll(t.Name(), "/", "-")
	g, err := cgroup.Make(where, name, limits)
	if err != nil {
		t.Fatal(err)
	}
	attr := &syscall.SysProcAttr{}
	var child *os.Process
	err = g.Start(attr, func() (err error) {
		child, err = os.StartProcess("/bin/sh", []string{"sh", "-c", "sleep 600 & while :; do :; done"}, &os.ProcAttr{Env: os.Environ(), Sys: attr})
		return err
	})
	if err != nil {
		t.Fatal(errors.Join(err, g.Remove()))
	}
	t.Cleanup(func() {
		for _, pid := range g.Processes() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		_ = g.Thaw()
		_, _ = child.Wait()
		if err := g.Remove(); err != nil {
			t.Error(err)
		}
		if err := g.Remove(); err != nil {
			t.Errorf("a second time: %v", err)
		}
		for _, part := range g.Parts {
			if _, err := os.Stat(part.Dir); !os.IsNotExist(err) {
				t.Errorf("%s is left: %v", part.Dir, err)
			}
		}
	})
	await(t, "both processes", func() bool { return len(g.Processes()) == 2 })
	return g, child
}

func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("still waiting for %s", what)
		}
	}
}

func TestFreeze(t *testing.T) {
	eachVersion(t, func(t *testing.T, where []cgroup.Hierarchy) {
		if !cgroup.CanFreeze(where) {
			t.Skip("there is no freezer")
		}
		g, child := group(t, where, sandbox.Limits{})
		if g.Frozen() {
			t.Error("it is frozen from the beginning")
		}
		for range 2 {
			if err := g.Freeze(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if !g.Frozen() {
			t.Error("it is not frozen")
		}
		before := spent(t, child.Pid)
		time.Sleep(100 * time.Millisecond) // a spinning process would use all of it
		if after := spent(t, child.Pid); after != before {
			t.Errorf("a frozen process went from %s to %s ticks", before, after)
		}
		if err := g.Thaw(); err != nil || g.Frozen() {
			t.Errorf("thawed: %t, %v", !g.Frozen(), err)
		}
		await(t, "the process to go on", func() bool { return spent(t, child.Pid) != before })
		over, cancel := context.WithCancel(t.Context())
		cancel()
		if err := g.Freeze(over); !errors.Is(err, context.Canceled) || g.Frozen() {
			t.Errorf("without time: %v, frozen %t", err, g.Frozen())
		}
	})
}

// spent is the processor time of a process according to /proc.
func spent(t *testing.T, pid int) string {
	t.Helper()
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(data))
	return fields[13] + "+" + fields[14]
}

func TestUsage(t *testing.T) {
	eachVersion(t, func(t *testing.T, where []cgroup.Hierarchy) {
		g, _ := group(t, where, sandbox.Limits{})
		await(t, "the processor to be used", func() bool { return g.Usage().CPU > 0 })
		u := g.Usage()
		kept, err := g.Set(sandbox.Limits{}, "/")
		if err != nil || len(kept) > 0 {
			t.Errorf("without limits: %v, %v", kept, err)
		}
		counts := cgroup.Keeps(where)
		if u.Processes != 2 || slices.Contains(counts, sandbox.LimitPIDs) != (u.Threads == 2) ||
			slices.Contains(counts, sandbox.LimitMemory) != (u.Memory > 0) || u.OOMKills > 0 || u.RefusedPIDs > 0 {
			t.Errorf("a shell and a sleep use %+v, and %q are counted", u, counts)
		}
	})
}

func TestLimitsAreInForceAndChange(t *testing.T) {
	eachVersion(t, func(t *testing.T, where []cgroup.Hierarchy) {
		keeps := cgroup.Keeps(where)
		if !slices.Contains(keeps, sandbox.LimitPIDs) || !slices.Contains(keeps, sandbox.LimitMemory) {
			t.Skipf("only %q can be limited", keeps)
		}
		g, _ := group(t, where, sandbox.Limits{})
		tight := sandbox.Limits{Memory: 64 << 20, PIDs: 64, CPUs: 0.5}
		for range 2 {
			kept, err := g.Set(tight, "/")
			if err != nil || !strings.HasPrefix(kept[sandbox.LimitPIDs], "cgroup v") || !strings.HasPrefix(kept[sandbox.LimitMemory], "cgroup v") {
				t.Fatalf("%v, %v", kept, err)
			}
		}
		run := func(script string) error {
			attr := &syscall.SysProcAttr{}
			var cmd *exec.Cmd
			err := g.Start(attr, func() error {
				cmd = exec.Command("/bin/sh", "-c", script)
				cmd.SysProcAttr = attr
				return cmd.Start()
			})
			if err != nil {
				t.Fatal(err)
			}
			return cmd.Wait()
		}
		// dd takes its buffer at once.
		const big = "dd if=/dev/zero of=/dev/null bs=200M count=1 2>/dev/null"
		if err := run(big); err == nil {
			t.Error("200 MiB fit into 64")
		}
		if u := g.Usage(); u.OOMKills < 1 {
			t.Errorf("nothing was ended: %+v", u)
		}
		const many = "for i in $(seq 100); do sleep 1 & done; wait"
		if err := run(many); err == nil {
			t.Error("100 processes fit into 64")
		}
		if u := g.Usage(); u.RefusedPIDs < 1 {
			t.Errorf("nothing was refused: %+v", u)
		}
		// Raised and lifted, in either order of the files that version 1 has.
		for _, wide := range []sandbox.Limits{{Memory: 1 << 30, PIDs: 1000}, {Memory: 512 << 20, PIDs: 900}, {}} {
			if _, err := g.Set(wide, "/"); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(run(big), run(many)); err != nil {
				t.Errorf("with %+v: %v", wide, err)
			}
		}
	})
}

// Leftovers of a crash under the name go when the name is used again.
func TestLeftoversGo(t *testing.T) {
	eachVersion(t, func(t *testing.T, where []cgroup.Hierarchy) {
		name := "litterbox-test-left-" + strconv.Itoa(os.Getpid())
		for range 2 {
			if _, err := cgroup.Make(where, name, sandbox.Limits{}); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			if err := cgroup.Sweep(where, name); err != nil {
				t.Error(err)
			}
		}
		for _, h := range where {
			if _, err := os.Stat(h.Parent + "/" + name); !os.IsNotExist(err) {
				t.Errorf("it is left in %s: %v", h.Parent, err)
			}
		}
	})
}

func BenchmarkMakeAndRemove(b *testing.B) {
	where := cgroup.Find()
	if len(where) == 0 {
		b.Skip("no control group may be made here")
	}
	for b.Loop() {
		g, err := cgroup.Make(where, "litterbox-bench-"+strconv.Itoa(os.Getpid()), sandbox.Limits{})
		if err == nil {
			_, err = g.Set(sandbox.Limits{Memory: 1 << 30, PIDs: 4096}, "/")
		}
		if err == nil {
			err = g.Start(&syscall.SysProcAttr{}, func() error { return nil })
		}
		if err = errors.Join(err, g.Remove()); err != nil {
			b.Fatal(err)
		}
	}
}
