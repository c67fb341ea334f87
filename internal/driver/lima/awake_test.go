package lima_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/lima"
)

// What is kept in the machine that sandboxes share can be asked for when it is stopped: it
// is started for that, and never made.
func TestFilesInAStoppedMachine(t *testing.T) {
	w := newWorld(t)
	stateDir := filepath.Join(filepath.Dir(w.home), "state", "sandboxes", "one")
	if err := os.MkdirAll(stateDir, 0o700); err != nil {
		t.Fatal(err)
	}
	d, lease := lima.New(w.options), driver.Lease{ID: "one", SandboxID: "one", StateDir: stateDir}
	if _, err := d.Files(lease).List(t.Context()); !errors.Is(err, driver.ErrMachineLost) {
		t.Errorf("without a machine: %v", err)
	}
	if calls := w.calls(t); len(calls) > 0 {
		t.Errorf("limactl was asked: %s", calls)
	}
	for name, ask := range map[string]func() error{
		"its files":   func() error { _, err := d.Files(lease).List(t.Context()); return err },
		"one of them": func() error { _, err := d.Files(lease).Content(t.Context(), "file"); return err },
		"its git":     func() error { _, err := d.Files(lease).Refs(t.Context()); return err },
	} {
		w.write(t, "state", "Stopped\n")
		if err := os.MkdirAll(filepath.Join(w.home, "litterbox"), 0o700); err != nil {
			t.Fatal(err)
		}
		err := ask() // what answers is no outpost
		if calls := strings.Join(w.calls(t), " "); err == nil || errors.Is(err, driver.ErrMachineLost) || calls != "start" {
			t.Errorf("%s: limactl was asked: %s, %v", name, calls, err)
		}
	}
	w.write(t, "state", "Stopped\n")
	if _, _, err := d.Files(lease).Size(t.Context()); !errors.Is(err, driver.ErrMachineLost) {
		t.Errorf("its size: %v", err)
	}
	if calls := w.calls(t); len(calls) > 0 {
		t.Errorf("to measure it limactl was asked: %s", calls)
	}
}
