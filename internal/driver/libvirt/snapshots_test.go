package libvirt_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/libvirt"
)

func (w *world) keep(label string) driver.Snapshot {
	w.t.Helper()
	taken, err := w.driver.Snapshot(w.t.Context(), w.lease, label)
	if err != nil {
		w.t.Fatal(err)
	}
	return taken
}

// lists demands the snapshots that another process sees.
func (w *world) lists(want ...driver.Snapshot) {
	w.t.Helper()
	got, err := w.another().Snapshots(w.t.Context(), w.lease)
	if diff := cmp.Diff(want, got, cmpopts.EquateApproxTime(0)); err != nil || diff != "" {
		w.t.Errorf("%v\n%s", err, diff)
	}
}

// A snapshot of a sandbox that runs has its memory. To return to it needs no domain
// that runs, and ends one that does; a link of before is dialled again.
func TestSnapshotWithMemory(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start("first")
	w.writes("one")
	taken := w.keep("before")
	if !taken.Memory || taken.Label != "before" || taken.ID == "" || taken.CreatedAt.IsZero() {
		t.Errorf("it is %+v", taken)
	}
	w.lists(taken)
	first := w.lease
	for _, off := range []bool{false, true} {
		w.start("second")
		w.writes("two")
		if err := w.driver.Attach(t.Context(), w.lease); err != nil {
			t.Fatal(err)
		}
		if off {
			if err := w.driver.Destroy(t.Context(), w.lease, true); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.driver.Revert(t.Context(), w.lease, taken.ID); err != nil {
			t.Fatalf("off: %t: %v", off, err)
		}
		w.holds(libvirt.Runs, "one", 1)
		if err := w.driver.Attach(t.Context(), first); err != nil {
			t.Errorf("off: %t: the place that was kept: %v", off, err)
		}
		if err := w.driver.Attach(t.Context(), w.lease); !errors.Is(err, driver.ErrMachineLost) {
			t.Errorf("off: %t: the place that ran since: %v", off, err)
		}
	}
}

// A paused sandbox stays paused when a snapshot is taken, and what is brought back
// is not.
func TestSnapshotOfAPausedSandbox(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start("first")
	if err := w.driver.Pause(t.Context(), w.lease, "user"); err != nil {
		t.Fatal(err)
	}
	taken := w.keep("")
	w.holds(libvirt.Paused, "", 1)
	if !taken.Memory {
		t.Errorf("it is %+v", taken)
	}
	if err := w.driver.Revert(t.Context(), w.lease, taken.ID); err != nil {
		t.Fatal(err)
	}
	w.holds(libvirt.Runs, "", 1)
	if err := w.driver.Attach(t.Context(), w.lease); err != nil {
		t.Error(err)
	}
}

// A snapshot of a domain that is off has its disk only.
func TestSnapshotOfAStoppedSandbox(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start("first")
	w.writes("one")
	if err := w.driver.Destroy(t.Context(), w.lease, true); err != nil {
		t.Fatal(err)
	}
	taken := w.keep("off")
	if taken.Memory {
		t.Errorf("it is %+v", taken)
	}
	w.start("second")
	w.writes("two")
	if err := w.driver.Revert(t.Context(), w.lease, taken.ID); !errors.Is(err, driver.ErrHeld) {
		t.Errorf("while a place runs: %v", err)
	}
	w.holds(libvirt.Runs, "two", 1)
	if err := w.driver.Destroy(t.Context(), w.lease, true); err != nil {
		t.Fatal(err)
	}
	if err := w.driver.Revert(t.Context(), w.lease, taken.ID); err != nil {
		t.Fatal(err)
	}
	w.holds(libvirt.Off, "one", 1)
}

// A machine that is on for its files alone brings no place back.
func TestSnapshotOfAMachineWithoutAPlace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start("first")
	w.change(func(d *domain) { d.memory = "-" })
	taken := w.keep("")
	if taken.Memory {
		t.Errorf("it is %+v", taken)
	}
	w.writes("two")
	if err := w.driver.Revert(t.Context(), w.lease, taken.ID); err != nil {
		t.Fatal(err)
	}
	w.holds(libvirt.Runs, "", 1)
	if err := w.driver.Attach(t.Context(), w.lease); !errors.Is(err, driver.ErrMachineLost) {
		t.Errorf("its place: %v", err)
	}
}

// libvirt's knowledge of snapshots ends with the domain's definition; the disk has
// them.
func TestSnapshotsOfAnUndefinedDomain(t *testing.T) {
	t.Parallel()
	for name, forget := range map[string]func(w *world){
		"undefined": func(w *world) {
			w.change(func(d *domain) { w.libvirt.off(d) })
			clear(w.libvirt.domains)
		},
		"defined anew": func(w *world) { w.change(func(d *domain) { clear(d.known) }) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.start("first")
			w.writes("one")
			one, two := w.keep("1"), w.keep("2")
			w.writes("two")
			forget(w)
			if err := w.driver.Revert(t.Context(), w.lease, one.ID); err != nil {
				t.Fatal(err)
			}
			w.holds(libvirt.Runs, "one", 2)
			if err := w.driver.Attach(t.Context(), w.lease); err != nil {
				t.Error(err)
			}
			w.lists(one, two)
			forget(w)
			if err := w.driver.DeleteSnapshot(t.Context(), w.lease, two.ID); err != nil {
				t.Fatal(err)
			}
			w.change(func(d *domain) {
				if on, err := readDisk(filepath.Join(d.dir, "state.qcow2")); err != nil || len(on.kept) != 1 {
					t.Errorf("the disk has %v, %v", on.kept, err)
				}
			})
		})
	}
}

// A snapshot whose taking is cut off is not listed, and the next call clears it
// away.
func TestSnapshotThatIsCutOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start("first")
	for _, op := range []libvirt.Op{libvirt.OpSnapshot, libvirt.OpForget} { // libvirt is gone before it can be cleared away
		w.libvirt.fails[op] = driver.ErrUnreachable
	}
	if _, err := w.driver.Snapshot(t.Context(), w.lease, ""); !errors.Is(err, driver.ErrUnreachable) {
		t.Errorf("it says %v", err)
	}
	w.holds(libvirt.Runs, "", 1)
	w.lists()
	w.libvirt.fails[libvirt.OpSnapshot] = driver.ErrDiskFull
	if _, err := w.driver.Snapshot(t.Context(), w.lease, ""); !errors.Is(err, driver.ErrDiskFull) {
		t.Errorf("it says %v", err)
	}
	w.holds(libvirt.Runs, "", 0)
	w.lists()
	w.lists(w.keep("whole"))
}

func TestDeleteSnapshot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start("first")
	one, two := w.keep("1"), w.keep("2")
	w.libvirt.fails[libvirt.OpForget] = driver.ErrUnreachable
	if err := w.driver.DeleteSnapshot(t.Context(), w.lease, one.ID); !errors.Is(err, driver.ErrUnreachable) {
		t.Errorf("while libvirt is gone: %v", err)
	}
	w.holds(libvirt.Runs, "", 2)
	for range 2 {
		if err := w.driver.DeleteSnapshot(t.Context(), w.lease, one.ID); err != nil {
			t.Error(err)
		}
	}
	w.holds(libvirt.Runs, "", 1)
	w.lists(two)
	if err := w.driver.Revert(t.Context(), w.lease, one.ID); !errors.Is(err, driver.ErrNoSnapshot) {
		t.Errorf("a revert to it says %v", err)
	}
}

// A sandbox that never ran has no snapshots, and none is taken.
func TestSnapshotOfNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, err := w.driver.Snapshot(t.Context(), w.lease, ""); !errors.Is(err, driver.ErrNoSnapshot) {
		t.Errorf("a snapshot says %v", err)
	}
	if err := w.driver.Revert(t.Context(), w.lease, "1"); !errors.Is(err, driver.ErrNoSnapshot) {
		t.Errorf("a revert says %v", err)
	}
	if err := w.driver.DeleteSnapshot(t.Context(), w.lease, "1"); err != nil {
		t.Error(err)
	}
	w.lists()
}

// A domain that stands still for want of room is not kept as it is.
func TestSnapshotWithoutRoom(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start("first")
	w.lease.Handle = nil // nothing can be asked inside
	w.change(func(d *domain) { d.state, d.reason = libvirt.Paused, "ioerror" })
	if _, err := w.driver.Snapshot(t.Context(), w.lease, ""); !errors.Is(err, driver.ErrDiskFull) {
		t.Errorf("it says %v", err)
	}
}

// What a deleted sandbox kept is gone with its disk.
func TestForgetWithSnapshots(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start("first")
	w.keep("")
	if err := w.driver.Forget(t.Context(), w.lease); err != nil {
		t.Fatal(err)
	}
	w.lists()
	if left := len(w.libvirt.domains); left > 0 {
		t.Errorf("%d domains are left", left)
	}
}
