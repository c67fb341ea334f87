package libvirt_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/libvirt"
)

// A new domain begins with the disk of the user's that vm.image names; a name of Lima's
// has no meaning, an address is refused, and a domain that exists keeps its image.
func TestDiskOfTheUser(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	options := w.options()
	var asked []string
	options.WithDisk = func(_ context.Context, built, file string) (string, error) {
		asked = append(asked, file)
		dir := filepath.Join(filepath.Dir(built), "2")
		state, err := os.ReadFile(filepath.Join(built, "state.qcow2"))
		if err == nil {
			err = os.MkdirAll(dir, 0o700)
		}
		if err == nil {
			err = errors.Join(os.WriteFile(filepath.Join(dir, "state.qcow2"), state, 0o600), os.WriteFile(filepath.Join(dir, "root.qcow2"), nil, 0o600))
		}
		return dir, err
	}
	begins := func(id, image string) (xml string, err error) {
		other := w.of(w.sandbox(id))
		m := libvirt.Machine{Options: options, StateDir: other.lease.StateDir}.With(driver.VM{Image: image})
		if err := m.Ensure(t.Context()); err != nil {
			return "", err
		}
		if err := m.Ensure(t.Context()); err != nil { // as the next command does
			return "", err
		}
		other.change(func(d *domain) { xml = d.xml })
		return xml, nil
	}
	for id, test := range map[string]struct{ image, driver, source string }{
		"disk":  {"/home/me/cloud.img", "<driver name='qemu' type='qcow2'/>", "/images/2/root.qcow2'/>"},
		"name":  {"debian-13", "<driver name='qemu' type='raw'/>", "/images/1/root.squashfs'/>"},
		"unset": {"", "<driver name='qemu' type='raw'/>", "/images/1/root.squashfs'/>"},
	} {
		xml, err := begins(id, test.image)
		if err != nil || !strings.Contains(xml, test.driver) || !strings.Contains(xml, test.source) {
			t.Errorf("%s: %v\n%s", id, err, xml)
		}
	}
	if len(asked) != 1 || asked[0] != "/home/me/cloud.img" {
		t.Errorf("disks were made of %q", asked)
	}
	if _, err := begins("address", "https://example.org/cloud.img"); !errors.Is(err, driver.ErrUnsupported) {
		t.Errorf("an address: %v", err)
	}
}

// The copy of a disk that has changed goes when no machine stands on it any more: not
// before, and not while new ones begin with it.
func TestCopyOfAChangedDisk(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	options := w.options()
	options.DiskOf = func(_, image string) (string, bool) { return "/home/me/cloud.img", filepath.Base(image) == "old" }
	copied := ""
	options.WithDisk = func(_ context.Context, built, file string) (string, error) {
		copied = filepath.Join(filepath.Dir(built), filepath.Base(file))
		return copied, errors.Join(os.CopyFS(copied, os.DirFS(built)), os.WriteFile(filepath.Join(copied, "image.json"), nil, 0o600), os.Symlink(built, filepath.Join(copied, "built")))
	}
	begins := func(id, image string) libvirt.Machine {
		m := libvirt.Machine{Options: options, StateDir: w.of(w.sandbox(id)).lease.StateDir}
		if err := m.With(driver.VM{Image: image}).Ensure(t.Context()); err != nil {
			t.Fatal(err)
		}
		return m
	}
	lists := func(want ...string) (name string) {
		t.Helper()
		all, err := libvirt.New(options).Made(t.Context(), w.dir)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, one := range all {
			if got = append(got, one.Kind); one.Kind == "disk image" {
				name = one.Name
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("it lists %q, not %q", got, want)
		}
		return name
	}
	first := begins("first", "/home/me/old")
	old := copied
	second := begins("second", "/home/me/new")
	lists("saved machine")
	if err := first.Forget(t.Context()); err != nil {
		t.Fatal(err)
	}
	name := lists("disk image", "saved machine")
	if err := second.Forget(t.Context()); err != nil {
		t.Fatal(err)
	}
	lists("disk image", "saved machine") // new machines begin with the other one
	if err := libvirt.New(options).Unmake(t.Context(), w.dir, name); err != nil {
		t.Error(err)
	}
	lists("saved machine")
	if _, err := os.Stat(old); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the copy is still there: %v", err)
	}
	if err := libvirt.New(options).Unmake(t.Context(), w.dir, "disk-new"); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(copied); err != nil {
		t.Errorf("a copy that is in use: %v", err)
	}
}
