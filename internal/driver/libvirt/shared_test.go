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
	"github.com/litterbox-sandbox/litterbox/internal/driver/remote"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/seal"
)

// shares makes the state directory of a sandbox whose files are in the shared domain.
func (w *world) shares(id string) driver.Lease {
	w.t.Helper()
	stateDir := filepath.Join(w.dir, "sandboxes", id)
	err := os.MkdirAll(stateDir, 0o700)
	var data []byte
	if err == nil {
		data, err = seal.Encode(map[string]any{"version": 1, "machine": "libvirt shared", "identity": id, "begun": true})
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(stateDir, remote.File), data, 0o600)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return driver.Lease{ID: id, SandboxID: id, StateDir: stateDir}
}

// only returns the one domain that there is.
func (w *world) only() *domain {
	w.t.Helper()
	w.libvirt.mu.Lock()
	defer w.libvirt.mu.Unlock()
	if len(w.libvirt.domains) != 1 {
		w.t.Fatalf("there are %d domains", len(w.libvirt.domains))
	}
	for _, d := range w.libvirt.domains {
		return d
	}
	return nil
}

// Many sandboxes have one domain, with what the first of them chose. It is not saved
// for others, and one that libvirt has lost is made again from its disk.
func TestShared(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := libvirt.SharedIn(w.options(), w.dir)
	if err := m.Wake(t.Context()); !errors.Is(err, driver.ErrMachineLost) {
		t.Errorf("before the first sandbox: %v", err)
	}
	for _, given := range []driver.VM{{CPUs: 3, Memory: 2 << 30, Idle: time.Hour}, {CPUs: 1}} {
		if err := m.With(given).Ensure(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	first := w.only()
	for _, want := range []string{"<vcpu>3</vcpu>", "<memory unit='MiB'>2048</memory>", "litterbox.idle=3600", "id='libvirt-shared'", "59.sock"} {
		if !strings.Contains(first.xml, want) {
			t.Errorf("the domain has no %s:\n%s", want, first.xml)
		}
	}
	if saved := w.saved(); len(saved) > 0 {
		t.Errorf("saved is %q", saved)
	}
	w.libvirt.mu.Lock()
	w.libvirt.off(first)
	clear(w.libvirt.domains)
	w.libvirt.mu.Unlock()
	if err := m.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	if again := w.only(); again.name != first.name || again.state != libvirt.Runs {
		t.Errorf("%s became %s, which is %s", first.name, again.name, again.state)
	}
}

// Nothing of the shared domain belongs to one sandbox: there is no snapshot with memory.
func TestSharedCapabilities(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	can := libvirt.NewShared(w.options()).Capabilities()
	if want := (driver.Snapshots{Freeze: true, Live: true}); can.Snapshots != want || !can.Fork || !can.Pause || !can.Full() {
		t.Errorf("it can do %+v", can)
	}
	w.libvirt.fails[libvirt.OpVersion] = driver.ErrUnreachable
	if libvirt.NewShared(w.options()).Capabilities().Full() {
		t.Error("without libvirt it is available")
	}
}

// A question about files wakes the shared domain, and the last sandbox leaves it to
// Unmake.
func TestSharedDomainStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d, lease := libvirt.NewShared(w.options()), w.shares("one")
	if made, err := d.Made(t.Context(), w.dir); err != nil || len(made) > 0 {
		t.Errorf("before the first sandbox: %v, %v", made, err)
	}
	if err := libvirt.SharedIn(w.options(), w.dir).Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.libvirt.mu.Lock()
	for _, one := range w.libvirt.domains {
		w.libvirt.off(one)
	}
	w.libvirt.mu.Unlock()
	list, err := d.Files(lease).List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := list.Close(); err != nil {
		t.Error(err)
	}
	made, err := d.Made(t.Context(), w.dir)
	if err != nil || len(made) != 1 {
		t.Fatalf("made is %v, %v", made, err)
	}
	made[0].Bytes = 0 // of the file system's choice
	want := driver.Made{Name: w.only().name, Kind: "virtual machine", Image: "1", Engine: "qemu:///session", Running: true, Sandboxes: []string{"one"}}
	if diff := cmp.Diff(want, made[0]); diff != "" {
		t.Errorf("made (- want, + got):\n%s", diff)
	}
	if err := d.Unmake(t.Context(), w.dir, want.Name); fault.KindOf(err) != fault.Conflict {
		t.Errorf("with a sandbox in it: %v", err)
	}
	if err := os.RemoveAll(lease.StateDir); err != nil {
		t.Fatal(err)
	}
	w.libvirt.fails[libvirt.OpState] = driver.ErrUnreachable
	if made, err := d.Made(t.Context(), w.dir); err != nil || len(made) != 1 || made[0].Trouble == "" {
		t.Errorf("without libvirt: %v, %v", made, err)
	}
	for range 2 {
		if err := d.Unmake(t.Context(), w.dir, want.Name); err != nil {
			t.Error(err)
		}
	}
	if left := len(w.libvirt.domains); left > 0 {
		t.Errorf("%d domains are left", left)
	}
	if _, err := os.Stat(filepath.Join(w.dir, "machines", "libvirt", "vm")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its disk: %v", err)
	}
}

// A saved machine is listed, to be removed, when new sandboxes begin with another
// image.
func TestSavedMachineOfAnOldImage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.begins("first")
	made := func(options libvirt.Options) []driver.Made {
		t.Helper()
		all, err := libvirt.New(options).Made(t.Context(), w.dir)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	if all := made(w.options()); len(all) > 0 {
		t.Errorf("in use is %v", all)
	}
	missing, newer := w.options(), w.options()
	missing.Image = func() (string, error) { return "", fault.New(fault.NotFound, "there is no image") }
	newer.Image = func() (string, error) { return filepath.Join(w.dir, "images", "2"), nil }
	if all := made(missing); len(all) > 0 {
		t.Errorf("without an image: %v", all)
	}
	all := made(newer)
	if len(all) != 1 || all[0].Kind != "saved machine" || all[0].Image != "1" || all[0].Bytes == 0 || len(all[0].Sandboxes) > 0 {
		t.Fatalf("it is %+v", all)
	}
	record := filepath.Join(w.saved()[0], "warm.json")
	if err := os.WriteFile(record, []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if all := made(newer); len(all) != 1 || all[0].Image != "an older version" {
		t.Errorf("with a record that cannot be read it is %+v", all)
	}
	for _, name := range []string{"saved-other", all[0].Name, all[0].Name} {
		if err := libvirt.New(newer).Unmake(t.Context(), w.dir, name); err != nil {
			t.Error(err)
		}
		if left := len(w.saved()); (left == 1) != (name == "saved-other") {
			t.Errorf("after %s there are %d", name, left)
		}
	}
}
