package frozen_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/frozen"
)

const usr = "caches/system-0123-usr"

// installer is the box of a place that has written a file for a sandbox.
func installer(t *testing.T, target frozen.Box, name string) frozen.Box {
	t.Helper()
	b := frozen.Box{Dir: filepath.Join(filepath.Dir(target.Dir), "install-"+name), Owner: target.Owner}
	if err := os.MkdirAll(b.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := b.Borrow(target); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(b.Dir, usr, "upper", name))
	put(t, filepath.Join(b.Dir, "home", "not-this"))
	return b
}

func put(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
}

func system(t *testing.T, b frozen.Box) []string {
	t.Helper()
	r, err := frozen.Read(b.Dir)
	if err != nil {
		t.Fatal(err)
	}
	layers := frozen.LayersOf(b.Dir, r.Stack)
	if len(layers.Home)+len(layers.Upper) > 0 {
		t.Errorf("an installation brought %q and %q", layers.Home, layers.Upper)
	}
	var names []string
	for _, dir := range layers.System("/userlands/0123", "usr") {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			names = append(names, entry.Name())
		}
	}
	return names
}

// A sandbox stands on the packages installed for it, newest first, and on nothing
// else of the place. Packages installed above others than it has by now are refused.
func TestTakeSystem(t *testing.T) {
	t.Parallel()
	box := frozen.Box{Dir: filepath.Join(t.TempDir(), "sandboxes", "box"), Owner: frozen.Owner{UID: -1, GID: -1}}
	if err := os.MkdirAll(box.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(frozen.Store(box.Dir), 0o700); err != nil {
		t.Fatal(err)
	}
	first := installer(t, box, "first")
	late := installer(t, box, "late")
	if err := box.TakeSystem(first); err != nil {
		t.Fatal(err)
	}
	if err := box.TakeSystem(late); !errors.Is(err, frozen.ErrMoved) {
		t.Errorf("what was installed beside: %v", err)
	}
	if err := box.TakeSystem(installer(t, box, "second")); err != nil {
		t.Fatal(err)
	}
	if got := system(t, box); len(got) != 2 || got[0] != "second" || got[1] != "first" {
		t.Errorf("it stands on %q", got)
	}
	r, err := frozen.Read(box.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := frozen.LayersOf(box.Dir, r.Stack).Foundation(); got != "0123" {
		t.Errorf("its foundation is %q", got)
	}
}

// A golden keeps packages' marks about the directories below them.
func TestGoldenKeepsPackages(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	box := frozen.Box{Dir: filepath.Join(state, "sandboxes", "box"), Owner: frozen.Owner{UID: -1, GID: -1}}
	golden := frozen.Box{Dir: filepath.Join(state, "goldens", "one"), Owner: box.Owner}
	for _, dir := range []string{filepath.Join(box.Dir, usr, "upper/replaced"), filepath.Join(box.Dir, "caches/go/upper/replaced"), filepath.Join(box.Dir, "upper"), golden.Dir, frozen.Store(box.Dir)} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, cache := range []string{usr, "caches/go"} {
		if err := unix.Setxattr(filepath.Join(box.Dir, cache, "upper/replaced"), "user.overlay.opaque", []byte("y"), 0); err != nil {
			t.Skip("the file system has no such attributes: ", err)
		}
	}
	draft, err := golden.Draft()
	if err != nil {
		t.Fatal(err)
	}
	if err := draft.Fill(box, nil); err != nil {
		t.Fatal(err)
	}
	opaque := func(part string) bool {
		_, err := unix.Getxattr(filepath.Join(draft.Dir, part, "replaced"), "user.overlay.opaque", nil)
		return err == nil
	}
	if !opaque(usr) || opaque("caches/go") {
		t.Errorf("opaque directories: of packages %v, of a cache %v", opaque(usr), opaque("caches/go"))
	}
}
