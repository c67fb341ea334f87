package libvirt_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/libvirt"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// ensures makes or starts the domain, as the next command does.
func (w *world) ensures() error {
	return libvirt.Machine{Options: w.options(), StateDir: w.lease.StateDir}.Ensure(w.t.Context())
}

// A domain that could not write stands still; what is asked of it says so soon, and the
// first question after there is room lets it go on with all that it had.
func TestNoRoomOnTheDisk(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start("first")
	w.writes("one")
	w.change(func(d *domain) { d.state, d.reason, d.full = libvirt.Paused, "ioerror", true })
	_, err := libvirt.Machine{Options: w.options(), StateDir: w.lease.StateDir}.Dial(t.Context())
	if !errors.Is(err, driver.ErrUnreachable) || !strings.Contains(err.Error(), "could not write") {
		t.Errorf("a link to it: %v", err)
	}
	if err := w.another().Attach(t.Context(), w.lease); !errors.Is(err, driver.ErrUnreachable) || !strings.Contains(err.Error(), "could not write") {
		t.Errorf("its place: %v", err)
	}
	if err := w.ensures(); !errors.Is(err, driver.ErrDiskFull) || !strings.HasPrefix(fault.HintOf(err), "df -h "+w.lease.StateDir) {
		t.Errorf("a start: %v, %q", err, fault.HintOf(err))
	}
	w.holds(libvirt.Paused, "one", 0)
	w.change(func(d *domain) { d.full = false })
	if err := w.another().Attach(t.Context(), w.lease); err != nil {
		t.Error(err)
	}
	w.holds(libvirt.Runs, "one", 0)
	w.change(func(d *domain) { d.state, d.reason = libvirt.Paused, "ioerror" })
	if err := w.ensures(); err != nil {
		t.Error(err)
	}
	w.holds(libvirt.Runs, "one", 0)
}

// A paused domain that has ended with its host is lost, and no longer counts as paused;
// its disk is there.
func TestHostEndsWhilePaused(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(w *world){
		"off":  func(w *world) { w.change(func(d *domain) { w.libvirt.off(d) }) },
		"gone": func(w *world) { clear(w.libvirt.domains) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.start("first")
			w.writes("one")
			if err := w.driver.Pause(t.Context(), w.lease, "user"); err != nil {
				t.Fatal(err)
			}
			w.libvirt.fails[libvirt.OpState] = driver.ErrUnreachable
			if err := w.driver.Attach(t.Context(), w.lease); err != nil {
				t.Errorf("while libvirt does not answer: %v", err)
			}
			if err := w.driver.Attach(t.Context(), w.lease); err != nil {
				t.Errorf("while it is paused: %v", err)
			}
			w.change(func(d *domain) { w.libvirt.off(d) })
			end(w)
			if err := w.another().Attach(t.Context(), w.lease); !errors.Is(err, driver.ErrMachineLost) {
				t.Errorf("when it has ended: %v", err)
			}
			if (libvirt.Machine{Options: w.options(), StateDir: w.lease.StateDir}).Paused() {
				t.Error("it still counts as paused")
			}
			if err := w.ensures(); err != nil {
				t.Fatal(err)
			}
			w.holds(libvirt.Runs, "one", 0)
		})
	}
}

// A domain whose disk is damaged does not start, and the error names the disk and what
// may repair it. A start that fails otherwise is told as libvirt does.
func TestDamagedDisk(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		damage func(disk []byte) []byte
		want   string
	}{
		"cut off":   {func(disk []byte) []byte { return disk[:40] }, "it is cut off"},
		"empty":     {func([]byte) []byte { return nil }, "it is cut off"},
		"another's": {func(disk []byte) []byte { return append([]byte("\x00\x00\x00\x00"), disk[4:]...) }, "it does not begin as a disk of QEMU's"},
		"marked":    {func(disk []byte) []byte { disk[79] |= 2; return disk }, "QEMU has found errors in it"},
		"whole":     {func(disk []byte) []byte { return disk }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.start("first")
			w.change(func(d *domain) { w.libvirt.off(d) })
			path := filepath.Join(w.lease.StateDir, "vm", "state.qcow2")
			disk, err := os.ReadFile(path)
			if err == nil {
				err = os.WriteFile(path, test.damage(disk), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			w.libvirt.fails[libvirt.OpStart] = fault.Wrap("", driver.ErrLeaseUnavailable, "cannot start the domain: qemu unexpectedly closed the monitor")
			err = w.ensures()
			if !errors.Is(err, driver.ErrLeaseUnavailable) || !strings.Contains(err.Error(), "closed the monitor") {
				t.Errorf("it says %v", err)
			}
			hint := ""
			if test.want != "" {
				hint = "qemu-img check -r all " + path
			}
			if !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "damaged") != (test.want != "") || fault.HintOf(err) != hint {
				t.Errorf("it says %v, with the hint %q", err, fault.HintOf(err))
			}
		})
	}
}
