package remote_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/remote"
	"github.com/litterbox-sandbox/litterbox/internal/hostile"
)

// grown makes two layers of a cache like those of a history that has grown: the
// second has the large file of the first, as a hard link, and a small one of its
// own.
func grown(t *testing.T, large []byte) (first, second string) {
	t.Helper()
	dir := t.TempDir()
	first, second = filepath.Join(dir, "1", "layer"), filepath.Join(dir, "2", "layer")
	for _, made := range []string{first, second} {
		if err := os.MkdirAll(filepath.Join(made, "packs"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	err := errors.Join(
		os.WriteFile(filepath.Join(first, "packs/large"), large, 0o444),
		os.Link(filepath.Join(first, "packs/large"), filepath.Join(second, "packs/renamed")),
		os.WriteFile(filepath.Join(second, "packs/small"), []byte("new"), 0o444),
	)
	if err != nil {
		t.Fatal(err)
	}
	return first, second
}

// on returns spec for another sandbox, on another layer.
func on(t *testing.T, spec driver.Spec, id, layer string) driver.Spec {
	t.Helper()
	spec.SandboxID, spec.Workspace.Layers = id, []string{layer}
	if err := os.Remove(filepath.Join(spec.StateDir, remote.File)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return spec
}

// Files that another layer of the machine has are not sent again, also after
// cuts. If the machine no longer has them, everything is sent.
func TestSharedFilesAreSentOnce(t *testing.T) {
	large := make([]byte, 3<<20)
	_, _ = rand.Read(large) // never fails, crypto/rand
	first, second := grown(t, large)
	d, f, spec := newFlaky(t, nil)
	acquire := func(id, layer string) (sent int) {
		t.Helper()
		before := f.received()
		if _, err := d.Acquire(t.Context(), on(t, spec, id, layer)); err != nil {
			t.Fatal(err)
		}
		return f.received() - before
	}
	if sent := acquire("a", first); sent < len(large) {
		t.Fatalf("%d bytes were sent for %d: the test shows nothing", sent, len(large))
	}
	if sent := acquire("b", second); sent > 64<<10 {
		t.Errorf("%d bytes were sent for what is there already", sent)
	}
	found, err := filepath.Glob(filepath.Join(f.root, "layers/*/files/packs/*"))
	if err != nil || len(found) != 3 {
		t.Fatalf("there are %q, %v", found, err)
	}
	for _, path := range found {
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		want := large
		if filepath.Base(path) == "small" {
			want = []byte("new")
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) || info.Mode() != 0o444 || len(want) > 3 && info.Sys().(*syscall.Stat_t).Nlink != 2 {
			t.Errorf("%s: %d bytes of mode %v", path, len(got), info.Mode())
		}
	}
	// Without the first layer, of which nothing is known here.
	for _, path := range found {
		if filepath.Base(path) != "large" {
			continue
		}
		if err := hostile.Remove(filepath.Dir(filepath.Dir(filepath.Dir(path)))); err != nil {
			t.Fatal(err)
		}
	}
	if sent := acquire("c", first); sent > 64<<10 { // the second has the file, too
		t.Errorf("%d bytes were sent back", sent)
	}
	if err := hostile.Remove(filepath.Join(f.root, "layers")); err != nil {
		t.Fatal(err)
	}
	if sent := acquire("d", second); sent < len(large) {
		t.Errorf("%d bytes were sent to a machine that has nothing", sent)
	}
}

// The progress of a transfer grows up to the total, across cuts too.
func TestProgressOfATransfer(t *testing.T) {
	large := make([]byte, 3<<20)
	_, _ = rand.Read(large) // never fails, crypto/rand
	d, _, spec := newFlaky(t, large, 100, 900_000, 900_000)
	var last, end, calls int
	spec.Progress = func(what string, done, total int) {
		if what != "sending files to flaky" || done < 0 || done > total {
			t.Errorf("%q: %d of %d", what, done, total)
		}
		last, end, calls = done, total, calls+1
	}
	if _, err := d.Acquire(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	if calls < 4 || last != end || end != len(large)>>10 {
		t.Errorf("%d calls, the last is %d of %d", calls, last, end)
	}
}
