package libvirt_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/libvirt"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// What libvirt says about a domain is known in each of its states, and the agent is
// asked only when it could answer.
func TestMachineState(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, err := w.driver.Machine(t.Context(), w.lease, true); !errors.Is(err, driver.ErrMachineLost) {
		t.Errorf("before it began: %v", err)
	}
	w.start("first")
	name, yes := "", true
	w.change(func(d *domain) { name = d.name })
	measured := driver.Machine{Name: name, CPU: time.Nanosecond, Memory: 2, Balloon: 3, Used: 4, Read: 5, Written: 6}
	unmeasured := driver.Machine{Name: name, CPU: -1, Memory: -1, Balloon: -1, Used: -1, Read: -1, Written: -1}
	says := func(want driver.Machine, asked bool, state libvirt.State, reason string, agent *bool) {
		t.Helper()
		want.State, want.Reason, want.Agent = string(state), reason, agent
		got, err := w.driver.Machine(t.Context(), w.lease, asked)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v\n%s", err, diff)
		}
	}
	says(measured, true, libvirt.Runs, "unpaused", &yes)
	says(unmeasured, false, libvirt.Runs, "unpaused", nil)
	if err := w.driver.Pause(t.Context(), w.lease, "user"); err != nil {
		t.Fatal(err)
	}
	says(measured, true, libvirt.Paused, "user", nil)
	data := driver.Because(t.Context(), w.driver, w.lease, map[string]string{"reason": "user"})
	if diff := cmp.Diff(map[string]string{"reason": "user", "machine": "paused (user)"}, data); diff != "" {
		t.Error(diff)
	}
	w.libvirt.fails[libvirt.OpState] = driver.ErrUnreachable
	if data := driver.Because(t.Context(), w.driver, w.lease, nil); data != nil {
		t.Errorf("without libvirt an event has %v", data)
	}
	// Another process is told at once that its files stand still.
	if _, err := w.another().Files(w.lease).List(t.Context()); !errors.Is(err, driver.ErrUnreachable) || !strings.Contains(err.Error(), "paused") {
		t.Errorf("its files: %v", err)
	}
	if err := w.driver.Resume(t.Context(), w.lease); err != nil {
		t.Fatal(err)
	}
	w.libvirt.fails[libvirt.OpMeasure] = driver.ErrMachineLost // it ends in between
	says(unmeasured, true, libvirt.Runs, "unpaused", nil)
	w.change(func(d *domain) { w.libvirt.off(d) })
	says(unmeasured, true, libvirt.Off, "destroyed", nil)
	clear(w.libvirt.domains)
	says(unmeasured, true, libvirt.Lost, "", nil)
}

// A domain whose image is gone says which one, and what makes the same again.
func TestImageIsGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start("first")
	w.change(func(d *domain) { w.libvirt.off(d) })
	image := filepath.Join(w.dir, "images", "1")
	if err := os.RemoveAll(image); err != nil {
		t.Fatal(err)
	}
	err := libvirt.Machine{Options: w.options(), StateDir: w.lease.StateDir}.Ensure(t.Context())
	if !errors.Is(err, driver.ErrLeaseUnavailable) || !strings.Contains(err.Error(), image) || fault.HintOf(err) != "litterbox machine build-image" {
		t.Errorf("it says %v", err)
	}
}
