package outpost_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/outpost"
)

// makeTree makes a directory with everything that a layer can hold.
func makeTree(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	old := time.Unix(1_600_000_000, 123_456_789)
	must(os.MkdirAll(filepath.Join(dir, "a", "opaque"), 0o755))
	must(os.WriteFile(filepath.Join(dir, "a", "file"), bytes.Repeat([]byte("content\n"), 50_000), 0o640))
	must(os.WriteFile(filepath.Join(dir, "program"), nil, 0o755))
	must(os.WriteFile(filepath.Join(dir, "a", "opaque", "kept"), []byte("x"), 0o444))
	must(os.Symlink("../../outside", filepath.Join(dir, "a", "link")))
	must(unix.Mknod(filepath.Join(dir, "gone"), unix.S_IFCHR|0o600, 0))
	must(unix.Setxattr(filepath.Join(dir, "a", "opaque"), "user.overlay.opaque", []byte("y"), 0))
	must(os.Chmod(filepath.Join(dir, "a", "opaque"), 0o2555))
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(dir, "a", "opaque"), 0o755) }) // so that it can be removed
	for _, name := range []string{"a/file", "program", "a/opaque/kept", "a/opaque", "a"} {
		must(os.Chtimes(filepath.Join(dir, name), old, old))
	}
	return dir
}

// described holds the compared properties of a tree.
func described(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		said := info.Mode().String()
		if entry.Type()&(fs.ModeSymlink|fs.ModeCharDevice) == 0 {
			said += " " + info.ModTime().UTC().String()
		}
		switch {
		case entry.Type().IsRegular():
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			said += " " + string(data)
		case entry.Type()&fs.ModeSymlink != 0:
			target, _ := os.Readlink(path)
			said += " " + target
		case entry.IsDir():
			value := make([]byte, 8)
			if n, err := unix.Getxattr(path, "user.overlay.opaque", value); err == nil {
				said += " opaque " + string(value[:n])
			}
		default:
			if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Rdev == 0 {
				said += " whiteout"
			}
		}
		found[name] = said
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func nobody(string) (uid, gid int) { return -1, -1 }

func TestTreeArrivesAsItIs(t *testing.T) {
	dir, made := makeTree(t), t.TempDir()
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(made, "a", "opaque"), 0o755) }) // so that it can be removed
	var stream bytes.Buffer
	if err := outpost.WriteTree(t.Context(), &stream, []outpost.Part{{Dir: dir}}, 0); err != nil {
		t.Fatal(err)
	}
	if err := outpost.ReadTree(t.Context(), bytes.NewReader(stream.Bytes()), made, nobody); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(described(t, dir), described(t, made)); diff != "" {
		t.Errorf("(-sent +made):\n%s", diff)
	}
	// The rest after any cut is the same bytes, so a transfer can resume.
	for _, skip := range []int64{1, 20, 60_000, int64(stream.Len()) - 40, int64(stream.Len()) - 3, int64(stream.Len())} {
		var rest bytes.Buffer
		if err := outpost.WriteTree(t.Context(), &rest, []outpost.Part{{Dir: dir}}, skip); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(rest.Bytes(), stream.Bytes()[skip:]) {
			t.Errorf("from byte %d on something else is sent", skip)
		}
	}
	// A byte that has changed on the way is found.
	damaged := bytes.Clone(stream.Bytes())
	damaged[stream.Len()/2] ^= 1
	if err := outpost.ReadTree(t.Context(), bytes.NewReader(damaged), t.TempDir(), nobody); !errors.Is(err, outpost.ErrDamaged) {
		t.Errorf("a damaged tree: %v", err)
	}
	if err := outpost.ReadTree(t.Context(), bytes.NewReader(stream.Bytes()[:stream.Len()-1]), t.TempDir(), nobody); err == nil {
		t.Error("half a tree is taken for a whole one")
	}
}

// A tree stays where it is made.
func TestTreeLeadsNowhereElse(t *testing.T) {
	magic := "litterbox tree 1\n"
	file := func(path string) string {
		return "f" + string([]byte{byte(len(path))}) + path + "\xa4\x03\x00\x01x"
	}
	link := "l\x03out\xa4\x03\x00\x02.."
	for name, tree := range map[string]string{
		"upwards": magic + file("../x"), "absolute": magic + file("/tmp/outpost-x"), "not clean": magic + file("a/../x"),
		"through a link": magic + link + file("out/x"), "twice": magic + file("x") + file("x"), "nothing": magic + file(""),
	} {
		dir := t.TempDir()
		if err := outpost.ReadTree(t.Context(), bytes.NewReader([]byte(tree)), filepath.Join(dir), nobody); err == nil {
			t.Errorf("%s: it was made", name)
		}
		if _, err := os.Lstat(filepath.Join(filepath.Dir(dir), "x")); err == nil {
			t.Errorf("%s: it leads out", name)
		}
	}
}

func FuzzReadTree(f *testing.F) {
	f.Add([]byte("litterbox tree 1\nd\x01a\xed\x03\x00\x00f\x03a/b\xa4\x03\x00\x01xe"))
	f.Fuzz(func(t *testing.T, tree []byte) {
		// Regardless of its content, the end is an error, because the sum differs.
		if err := outpost.ReadTree(t.Context(), bytes.NewReader(tree), t.TempDir(), nobody); err == nil {
			t.Error("it is a whole tree")
		}
	})
}
