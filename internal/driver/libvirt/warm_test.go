package libvirt_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/libvirt"
)

// begins makes the domain of another sandbox, and reports whether it booted.
func (w *world) begins(id string) (other *world, booted bool) {
	w.t.Helper()
	other = w.of(w.sandbox(id))
	w.libvirt.mu.Lock()
	w.libvirt.calls = nil
	w.libvirt.mu.Unlock()
	other.start(id)
	w.libvirt.mu.Lock()
	defer w.libvirt.mu.Unlock()
	return other, slices.Contains(w.libvirt.calls, libvirt.OpStart)
}

// saved lists the saved machines.
func (w *world) saved() []string {
	w.t.Helper()
	found, err := filepath.Glob(filepath.Join(w.dir, "images", "warm", "*"))
	if err != nil {
		w.t.Fatal(err)
	}
	hidden, err := filepath.Glob(filepath.Join(w.dir, "images", "warm", ".*"))
	if err != nil || len(hidden) > 0 {
		w.t.Errorf("left is %q, %v", hidden, err)
	}
	return found
}

// The first machine of an image boots and is saved; others begin as copies of it, and
// have nothing in common with each other.
func TestWarmStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, booted := w.begins("first")
	if saved := w.saved(); !booted || len(saved) != 1 {
		t.Fatalf("the first one booted: %t, and saved is %q", booted, saved)
	}
	first.holds(libvirt.Runs, "", 0)
	first.lists()
	first.writes("of-the-first")
	second, booted := w.begins("second")
	if booted {
		t.Error("the second one booted")
	}
	second.holds(libvirt.Runs, "", 0)
	second.lists()
	if err := second.driver.Attach(t.Context(), second.lease); err != nil {
		t.Error(err)
	}
	taken := second.keep("")
	second.writes("of-the-second")
	if err := second.driver.Revert(t.Context(), second.lease, taken.ID); err != nil {
		t.Error(err)
	}
	second.holds(libvirt.Runs, "", 1)
	first.holds(libvirt.Runs, "of-the-first", 0)
	if err := first.driver.Forget(t.Context(), first.lease); err != nil {
		t.Error(err)
	}
	if _, booted := w.begins("third"); booted {
		t.Error("after the deletion of the first one the third booted")
	}
	if saved := w.saved(); len(saved) != 1 {
		t.Errorf("saved is %q", saved)
	}
}

// A saved machine that does not come up is removed, and the sandbox boots one.
func TestWarmStartThatFails(t *testing.T) {
	t.Parallel()
	for _, op := range []libvirt.Op{libvirt.OpDefine, libvirt.OpRedefine, libvirt.OpRevert} {
		t.Run(string(op), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.begins("first")
			w.libvirt.fails[op] = driver.ErrLeaseUnavailable
			second, booted := w.begins("second")
			if saved := w.saved(); !booted || len(saved) != 1 {
				t.Errorf("it booted: %t, and saved is %q", booted, saved)
			}
			second.holds(libvirt.Runs, "", 0)
			if _, booted := w.begins("third"); booted {
				t.Error("the one after that booted")
			}
		})
	}
}

// A machine that cannot be saved works.
func TestUnsavedMachine(t *testing.T) {
	t.Parallel()
	for _, op := range []libvirt.Op{libvirt.OpSnapshot, libvirt.OpSuspend, libvirt.OpForget} {
		t.Run(string(op), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.libvirt.fails[op] = driver.ErrDiskFull
			first, _ := w.begins("first")
			if saved := w.saved(); len(saved) > 0 {
				t.Errorf("saved is %q", saved)
			}
			if err := first.driver.Attach(t.Context(), first.lease); err != nil {
				t.Error(err)
			}
			first.keep("") // clears away what is left
			first.change(func(d *domain) {
				if on, err := readDisk(filepath.Join(d.dir, "state.qcow2")); err != nil || len(on.kept) != 1 {
					t.Errorf("the disk has %v, %v", on.kept, err)
				}
			})
		})
	}
}
