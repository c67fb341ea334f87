package keeper

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// due makes a watch look at once, however recently it did.
func (d *diskWatch) due() { d.born, d.at = time.Time{}, time.Time{} }

func TestDiskIsCountedAndToleratedUntilItGrows(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := newDiskWatch(dir)
	fill := func(name string, size int) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	wants := func(when string, want bool) {
		t.Helper()
		d.due()
		if got := d.exceeded(1 << 20); (got != "") != want {
			t.Errorf("%s: %q with %+v", when, got, d.known)
		}
	}
	wants("empty", false)
	fill("a", 900<<10)
	wants("below", false)
	fill("b", 300<<10)
	wants("above", true)
	wants("above and not growing: somebody may be deleting", false)
	fill("record", 60<<10)
	wants("above and a command recorded", false)
	fill("c", 200<<10)
	wants("growing again", true)
	fill("late", 200<<10)
	d.ended()
	wants("written until everything had ended", false)
	if err := os.Remove(filepath.Join(dir, "late")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "a")); err != nil {
		t.Fatal(err)
	}
	wants("below again", false)
	fill("d", 900<<10)
	wants("above again", true)
}

// A count is only made when the file system has grown by as much as was left.
func TestDiskIsNotCountedWithoutNeed(t *testing.T) {
	t.Parallel()
	d := newDiskWatch(t.TempDir())
	d.due()
	if got := d.exceeded(1 << 40); got != "" || d.at.IsZero() {
		t.Fatalf("the first count: %q at %s", got, d.at)
	}
	first := d.at
	if got := d.exceeded(1 << 40); got != "" || d.at != first {
		t.Errorf("it was counted again: %q at %s, before at %s", got, d.at, first)
	}
	d.due()
	if got := d.exceeded(0); got != "" || !d.at.IsZero() {
		t.Errorf("without a limit: %q at %s", got, d.at)
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), t.TempDir()
	put := func(path string, size int) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before := usage(dir)
	put(filepath.Join(outside, "big"), 10<<20)
	if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	put(filepath.Join(dir, "file"), 1<<20)
	for i := range 5 {
		if err := os.Link(filepath.Join(dir, "file"), filepath.Join(dir, fmt.Sprint("name", i))); err != nil {
			t.Fatal(err)
		}
	}
	sparse, err := os.Create(filepath.Join(dir, "sparse"))
	if err != nil {
		t.Fatal(err)
	}
	if err := sparse.Truncate(1 << 40); err != nil {
		t.Fatal(err)
	}
	sparse.Close()
	put(filepath.Join(dir, strings.Repeat("d/", 50)+"deep"), 1<<20)
	got := usage(dir)
	grown := got.bytes - before.bytes
	// Directories take room of their own.
	if grown < 2<<20 || grown > 3<<20 || got.hidden {
		t.Errorf("%+v, %d more than before; want what is in two files of 1 MiB", got, grown)
	}
	// link, file, sparse, 50 directories, deep.
	if files := got.inodes - before.inodes; files != 54 {
		t.Errorf("%d files were counted, want 54", files)
	}
	if a := (amount{bytes: 100, inodes: 10}); a.size() != 10*inodeBytes {
		t.Errorf("empty files count %d", a.size())
	}
	// An unreadable directory is not taken for an empty one; nothing stops root.
	if os.Geteuid() != 0 {
		if err := os.Chmod(filepath.Join(dir, "d"), 0); err != nil {
			t.Fatal(err)
		}
		got = usage(dir)
		if err := os.Chmod(filepath.Join(dir, "d"), 0o700); err != nil || !got.hidden {
			t.Errorf("a directory without permissions: %+v, %v", got, err)
		}
	}
	if got := usage(filepath.Join(dir, "missing")); got != (amount{}) {
		t.Errorf("a directory that is gone: %+v", got)
	}
}
