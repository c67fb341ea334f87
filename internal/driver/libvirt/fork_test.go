package libvirt_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/libvirt"
	"github.com/litterbox-sandbox/litterbox/internal/driver/remote"
	"github.com/litterbox-sandbox/litterbox/internal/seal"
)

// begun writes the record that the sandbox's files are in its domain.
func (w *world) begun() {
	w.t.Helper()
	data, err := seal.Encode(map[string]any{"version": 1, "machine": "libvirt one", "identity": "first", "begun": true})
	if err == nil {
		err = os.WriteFile(filepath.Join(w.lease.StateDir, remote.File), data, 0o600)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// of is the world with the other sandbox.
func (w *world) of(lease driver.Lease) *world {
	other := *w
	other.lease = lease
	return &other
}

// A fork has a domain of its own, with the disk of the snapshot, in which the first
// one's place has ended. The first one goes on.
func TestFork(t *testing.T) {
	t.Parallel()
	for name, on := range map[string]bool{"with memory": true, "of a disk": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.start("first")
			w.begun()
			w.writes("one")
			if !on {
				if err := w.driver.Destroy(t.Context(), w.lease, true); err != nil {
					t.Fatal(err)
				}
			}
			before := w.keep("before")
			taken := w.keep("to fork")
			w.start("second")
			w.writes("two")
			second := w.sandbox("two")
			if _, err := w.driver.Fork(t.Context(), w.lease, taken.ID, second); err != nil {
				t.Fatal(err)
			}
			w.holds(libvirt.Runs, "two", 2)
			w.lists(before, taken)
			if err := w.driver.Attach(t.Context(), w.lease); err != nil {
				t.Errorf("the first one: %v", err)
			}
			fork := w.of(second)
			fork.holds(libvirt.Runs, "one", 0)
			fork.lists()
			asked := []string{"snapshot one", "fork one two", "forget one"}
			if on {
				asked = append([]string{"destroy one"}, asked...)
			}
			fork.change(func(d *domain) {
				if diff := cmp.Diff(asked, d.asked); diff != "" || d.memory != "-" {
					t.Errorf("in the fork's domain runs %q, and it was asked\n%s", d.memory, diff)
				}
			})
			if err := w.driver.Rebranch(t.Context(), second, "box", "other"); err != nil {
				t.Error(err)
			}
			for _, one := range []driver.Lease{w.lease, second} { // either can go first
				if err := w.driver.Forget(t.Context(), one); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// A fork that fails leaves nothing, and changes nothing of the first one.
func TestForkThatFails(t *testing.T) {
	t.Parallel()
	for _, op := range []libvirt.Op{libvirt.OpSuspend, libvirt.OpDefine, libvirt.OpRedefine, libvirt.OpRevert, libvirt.OpForget} {
		t.Run(string(op), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.start("first")
			w.begun()
			taken := w.keep("")
			second := w.sandbox("two")
			w.libvirt.fails[op] = driver.ErrDiskFull
			if _, err := w.driver.Fork(t.Context(), w.lease, taken.ID, second); !errors.Is(err, driver.ErrDiskFull) {
				t.Errorf("it says %v", err)
			}
			if len(w.libvirt.domains) != 1 {
				t.Errorf("there are %d domains", len(w.libvirt.domains))
			}
			if left, err := filepath.Glob(filepath.Join(second.StateDir, "vm*")); err != nil || len(left) > 0 {
				t.Errorf("left is %q, %v", left, err)
			}
			w.holds(libvirt.Runs, "", 1)
			if err := w.driver.Attach(t.Context(), w.lease); err != nil {
				t.Error(err)
			}
		})
	}
	w := newWorld(t)
	w.start("first")
	if _, err := w.driver.Fork(t.Context(), w.lease, "none", w.sandbox("two")); !errors.Is(err, driver.ErrNoSnapshot) {
		t.Errorf("of an unknown snapshot: %v", err)
	}
}

// A domain that stood still for a fork goes on although that was cut off.
func TestForkThatIsCutOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start("first")
	w.begun()
	taken := w.keep("")
	w.libvirt.fails[libvirt.OpResume] = driver.ErrUnreachable // libvirt is gone
	if _, err := w.driver.Fork(t.Context(), w.lease, taken.ID, w.sandbox("two")); !errors.Is(err, driver.ErrUnreachable) {
		t.Errorf("it says %v", err)
	}
	w.holds(libvirt.Paused, "", 1)
	if err := w.another().Attach(t.Context(), w.lease); err != nil {
		t.Errorf("the next command: %v", err)
	}
	w.holds(libvirt.Runs, "", 1)
}

// A paused sandbox stays paused when it is forked.
func TestForkOfAPausedSandbox(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start("first")
	w.begun()
	taken := w.keep("")
	if err := w.driver.Pause(t.Context(), w.lease, "user"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.driver.Fork(t.Context(), w.lease, taken.ID, w.sandbox("two")); err != nil {
		t.Fatal(err)
	}
	w.holds(libvirt.Paused, "", 1)
}
