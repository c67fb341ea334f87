package frozen_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/frozen"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// box makes a sandbox's directory with the files it has written.
func box(t *testing.T, root, id string) frozen.Box {
	t.Helper()
	b := frozen.Box{Dir: filepath.Join(root, "sandboxes", id), Owner: frozen.Owner{UID: -1, GID: -1}}
	for _, name := range []string{"upper", "home", "caches/npm/upper"} {
		must(t, os.MkdirAll(filepath.Join(b.Dir, name), 0o755))
		must(t, os.WriteFile(filepath.Join(b.Dir, name, "file"), []byte(id), 0o644))
	}
	return b
}

// listing returns a tree, one entry a line: its kind, its mode and its content.
func listing(t *testing.T, root string) []string {
	t.Helper()
	var found []string
	must(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		line := fmt.Sprintf("%s %s", name, info.Mode())
		switch {
		case info.Mode().IsRegular():
			content, readErr := os.ReadFile(path)
			err = errors.Join(err, readErr)
			line += " " + string(content)
		case info.Mode()&fs.ModeSymlink != 0:
			target, linkErr := os.Readlink(path)
			err = errors.Join(err, linkErr)
			line += " -> " + target
		}
		found = append(found, line)
		return err
	}))
	return found
}

// plant puts everything into a tree that must not come along.
func plant(t *testing.T, dir, outside string) {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(dir, "setuid"), []byte("x"), 0o755))
	must(t, unix.Chmod(filepath.Join(dir, "setuid"), 0o6755))
	must(t, os.Mkdir(filepath.Join(dir, "setgid"), 0o755))
	must(t, unix.Chmod(filepath.Join(dir, "setgid"), 0o2755))
	must(t, os.Symlink(outside, filepath.Join(dir, "away")))
	must(t, os.Symlink(filepath.Join(outside, "secret"), filepath.Join(dir, "leak")))
	must(t, unix.Mknod(filepath.Join(dir, "whiteout"), unix.S_IFCHR|0o600, 0))
	must(t, unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	must(t, os.Mkdir(filepath.Join(dir, "attributed"), 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "attributed/kept"), []byte("kept"), 0o644))
	must(t, os.Mkdir(filepath.Join(dir, "closed"), 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "closed/file"), []byte("closed"), 0o000))
	must(t, unix.Chmod(filepath.Join(dir, "closed"), 0o000))
	t.Cleanup(func() { _ = unix.Chmod(filepath.Join(dir, "closed"), 0o700) })
	for _, name := range []string{"redirect", "metacopy", "opaque", "origin", "whiteout"} {
		if err := unix.Setxattr(filepath.Join(dir, "attributed"), "user.overlay."+name, []byte("y"), 0); errors.Is(err, unix.ENOTSUP) {
			t.Skip("the file system of the tests has no attributes")
		} else {
			must(t, err)
		}
	}
	must(t, unix.Setxattr(filepath.Join(dir, "attributed"), "user.note", []byte("n"), 0))
	if os.Geteuid() == 0 { // what no sandbox can make, and a restored state directory might hold
		_ = unix.Mknod(filepath.Join(dir, "device"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3)))
	}
}

// A copy of a hostile sandbox's files holds files and nothing that gives rights,
// leads out, or means something to an overlay unless the kernel set it.
func TestCopiesBringFilesOnly(t *testing.T) {
	root, outside := t.TempDir(), t.TempDir()
	must(t, os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o600))
	b := box(t, root, "a")
	plant(t, filepath.Join(b.Dir, "upper"), outside)
	plant(t, filepath.Join(b.Dir, "home"), outside)
	kept, err := b.Snapshot("live", true)
	must(t, err)
	layer := filepath.Join(frozen.Store(b.Dir), kept.ID)
	for _, part := range []string{"upper", "home"} {
		dir := filepath.Join(layer, part)
		for name, want := range map[string]uint32{"setuid": unix.S_IFREG | 0o755, "setgid": unix.S_IFDIR | 0o755, "closed": unix.S_IFDIR, "leak": unix.S_IFLNK | 0o777, "away": unix.S_IFLNK | 0o777} {
			var st unix.Stat_t
			must(t, unix.Lstat(filepath.Join(dir, name), &st))
			if st.Mode != want {
				t.Errorf("%s/%s has mode %o, want %o", part, name, st.Mode, want)
			}
		}
		var st unix.Stat_t
		if err := unix.Lstat(filepath.Join(dir, "device"), &st); err == nil {
			t.Errorf("%s brings a device", part)
		}
		// The workspace is written by an overlay, where it is one of the kernel's.
		if err := unix.Lstat(filepath.Join(dir, "whiteout"), &st); (err == nil) != (part == "upper") {
			t.Errorf("%s brings a whiteout: %t", part, err == nil)
		}
		list := make([]byte, 1024)
		n, err := unix.Listxattr(filepath.Join(dir, "attributed"), list)
		must(t, err)
		names := strings.Split(strings.TrimSuffix(string(list[:n]), "\x00"), "\x00")
		want := []string{"user.note"}
		if part == "upper" {
			want = append(want, "user.overlay.opaque")
		}
		slices.Sort(names)
		names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, "user.") })
		if !slices.Equal(names, want) {
			t.Errorf("%s brings the attributes %q, want %q", part, names, want)
		}
		must(t, unix.Chmod(filepath.Join(dir, "closed"), 0o700))
		must(t, unix.Chmod(filepath.Join(dir, "closed/file"), 0o600))
		if content, err := os.ReadFile(filepath.Join(dir, "closed/file")); err != nil || string(content) != "closed" {
			t.Errorf("%s/closed/file: %q, %v", part, content, err)
		}
	}
	var st unix.Stat_t
	must(t, unix.Lstat(filepath.Join(b.Dir, "upper/closed"), &st))
	if st.Mode&0o777 != 0 {
		t.Errorf("what the sandbox closed is open to %o", st.Mode&0o777)
	}
}

func TestCopyKeepsLinksAndHoles(t *testing.T) {
	b := box(t, t.TempDir(), "a")
	upper := filepath.Join(b.Dir, "upper")
	must(t, os.Link(filepath.Join(upper, "file"), filepath.Join(upper, "again")))
	must(t, os.WriteFile(filepath.Join(upper, "sparse"), []byte("head"), 0o644))
	must(t, os.Truncate(filepath.Join(upper, "sparse"), 64<<20))
	kept, err := b.Snapshot("", true)
	must(t, err)
	dir := filepath.Join(frozen.Store(b.Dir), kept.ID, "upper")
	var one, two, sparse unix.Stat_t
	must(t, errors.Join(unix.Lstat(filepath.Join(dir, "file"), &one), unix.Lstat(filepath.Join(dir, "again"), &two), unix.Lstat(filepath.Join(dir, "sparse"), &sparse)))
	if one.Ino != two.Ino || sparse.Size != 64<<20 || sparse.Blocks*512 > 1<<20 {
		t.Errorf("inodes %d and %d, size %d in %d blocks", one.Ino, two.Ino, sparse.Size, sparse.Blocks)
	}
}

// Wherever its maker died, the next one finds the state before or the one
// after, with every file in exactly one place.
func TestEveryInterruptionIsFinished(t *testing.T) {
	for _, stage := range []string{"recorded", "one moved", "all moved", "emptied"} {
		t.Run(stage, func(t *testing.T) {
			b := box(t, t.TempDir(), "a")
			want := listing(t, b.Dir)
			kept, err := b.Snapshot("first", false)
			must(t, err)
			layer := filepath.Join(frozen.Store(b.Dir), kept.ID)
			// Back to the moment: what Snapshot did last is undone first.
			record := fmt.Sprintf(`{"version":1,"stack":[],"kept":[],"pending":{"layer":%q,"stack":[%q],"keep":{"id":%q,"label":"first","created_at":"2026-01-02T03:04:05Z","stack":[%q]}}}`, kept.ID, kept.ID, kept.ID, kept.ID)
			must(t, os.WriteFile(filepath.Join(b.Dir, frozen.File), []byte(record), 0o600))
			back := map[string]string{"upper": "upper", "home": "home", "caches/npm": "caches/npm/upper"}
			if stage == "one moved" {
				delete(back, "upper")
			}
			if stage == "emptied" || stage == "all moved" {
				back = nil
			}
			if stage == "all moved" {
				for _, name := range []string{"upper", "home", "caches/npm/upper"} {
					must(t, os.Remove(filepath.Join(b.Dir, name)))
				}
			}
			for from, to := range back {
				must(t, os.Remove(filepath.Join(b.Dir, to)))
				must(t, os.Rename(filepath.Join(layer, from), filepath.Join(b.Dir, to)))
			}
			r, err := b.Settled()
			must(t, err)
			if r.Pending != nil || !slices.Equal(r.Stack, []string{kept.ID}) || !r.Has(kept.ID) {
				t.Fatalf("%+v", r)
			}
			must(t, b.Revert(kept.ID))
			to := frozen.Box{Dir: filepath.Join(filepath.Dir(b.Dir), "b"), Owner: b.Owner}
			must(t, os.MkdirAll(to.Dir, 0o700))
			must(t, b.Fork(kept.ID, to))
			for _, one := range []frozen.Box{b, to} {
				for _, name := range []string{"upper", "home", "caches/npm/upper"} {
					if left := listing(t, filepath.Join(one.Dir, name)); len(left) > 0 {
						t.Errorf("%s of %s is not empty: %q", name, one.Dir, left)
					}
				}
			}
			got := listing(t, layer)
			if len(got) != 7 || !strings.Contains(strings.Join(got, "\n"), "upper/file -rw-r--r-- a") {
				t.Errorf("the layer holds %q of %q", got, want)
			}
		})
	}
}

// A layer goes when no record needs it, and not before.
func TestSweep(t *testing.T) {
	root := t.TempDir()
	b := box(t, root, "a")
	kept, err := b.Snapshot("first", false)
	must(t, err)
	to := frozen.Box{Dir: filepath.Join(root, "sandboxes", "b"), Owner: b.Owner}
	must(t, os.MkdirAll(to.Dir, 0o700))
	must(t, b.Fork(kept.ID, to))
	must(t, os.WriteFile(filepath.Join(b.Dir, "upper/later"), nil, 0o644))
	second, err := b.Snapshot("second", false)
	must(t, err)
	store := frozen.Store(b.Dir)
	must(t, os.MkdirAll(filepath.Join(store, "20260102030405-000000000000.partial"), 0o700))
	holders := func() ([]string, error) { return []string{b.Dir, to.Dir}, nil }
	layers := func() []string {
		must(t, frozen.Sweep(store, holders))
		entries, err := os.ReadDir(store)
		must(t, err)
		var names []string
		for _, entry := range entries {
			if entry.IsDir() {
				names = append(names, entry.Name())
			}
		}
		slices.Sort(names)
		return names
	}
	all := []string{kept.ID, second.ID}
	slices.Sort(all)
	if got := layers(); !slices.Equal(got, all) {
		t.Fatalf("%q", got)
	}
	must(t, b.Revert(kept.ID))
	must(t, b.Delete(second.ID))
	must(t, b.Delete(kept.ID))
	if got := layers(); !slices.Equal(got, []string{kept.ID}) {
		t.Fatalf("%q", got)
	}
	// Nothing goes while a record cannot be read.
	must(t, os.WriteFile(filepath.Join(to.Dir, frozen.File), []byte("{"), 0o600))
	must(t, os.Remove(filepath.Join(b.Dir, frozen.File)))
	if err := frozen.Sweep(store, holders); err == nil {
		t.Error("a damaged record keeps nothing")
	}
	must(t, os.Remove(filepath.Join(to.Dir, frozen.File)))
	if got := layers(); len(got) != 0 {
		t.Fatalf("%q", got)
	}
}

// A record that was edited leads nowhere else.
func TestRecordNamesNoOtherPlace(t *testing.T) {
	b := box(t, t.TempDir(), "a")
	for _, name := range []string{"../sandboxes/b", "/etc", "..", "a/b", "x"} {
		must(t, os.WriteFile(filepath.Join(b.Dir, frozen.File), []byte(fmt.Sprintf(`{"version":1,"stack":[%q]}`, name)), 0o600))
		if r, err := frozen.Read(b.Dir); err == nil {
			t.Errorf("%q is a layer: %+v", name, r)
		}
	}
}

// However many snapshots are taken, a sandbox has few layers, and they show the
// same as before they were joined.
func TestStackIsBounded(t *testing.T) {
	b := box(t, t.TempDir(), "a")
	upper := func(parts ...string) string { return filepath.Join(append([]string{b.Dir, "upper"}, parts...)...) }
	must(t, os.MkdirAll(upper("dir/below"), 0o755))
	must(t, os.WriteFile(upper("dir/below/old"), []byte("old"), 0o644))
	must(t, os.WriteFile(upper("gone"), nil, 0o644))
	var first frozen.Kept
	for n := range frozen.MaxStack + 2 {
		switch n {
		case 1: // as overlayfs would
			must(t, unix.Mknod(upper("gone"), unix.S_IFCHR|0o600, 0))
			must(t, os.Mkdir(upper("dir"), 0o750))
		case 2:
			must(t, os.MkdirAll(upper("dir/below"), 0o755))
			if err := unix.Setxattr(upper("dir/below"), "user.overlay.opaque", []byte("y"), 0); err != nil {
				t.Skip("the file system of the tests has no attributes")
			}
			must(t, os.WriteFile(upper("dir/below/new"), []byte("new"), 0o644))
			must(t, os.WriteFile(upper("file"), []byte("changed"), 0o644))
		}
		must(t, os.WriteFile(upper(fmt.Sprintf("n%d", n)), nil, 0o644))
		kept, err := b.Snapshot("", false)
		must(t, err)
		if n == 0 {
			first = kept
		}
	}
	r, err := b.Settled()
	must(t, err)
	if len(r.Stack) > 3 || len(first.Stack) != 1 {
		t.Fatalf("it stands on %d layers", len(r.Stack))
	}
	joined := filepath.Join(frozen.Store(b.Dir), r.Stack[len(r.Stack)-1], "upper")
	got := slices.DeleteFunc(listing(t, joined), func(line string) bool { return line[0] == 'n' })
	want := []string{"dir drwxr-xr-x", "dir/below drwxr-xr-x", "dir/below/new -rw-r--r-- new", "file -rw-r--r-- changed", "gone Dcrw-------"}
	if !slices.Equal(got, want) {
		t.Errorf("joined: %q, want %q", got, want)
	}
	value := make([]byte, 8)
	if n, err := unix.Getxattr(filepath.Join(joined, "dir/below"), "user.overlay.opaque", value); err != nil || string(value[:n]) != "y" {
		t.Errorf("what hides the base is lost: %v", err)
	}
	must(t, b.Revert(first.ID))
	if r, err = b.Settled(); err != nil || !slices.Equal(r.Stack, first.Stack) {
		t.Errorf("%+v, %v", r, err)
	}
}
