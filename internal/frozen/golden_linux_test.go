package frozen_test

import (
	"archive/tar"
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/frozen"
)

// golden makes the directory of a golden.
func golden(t *testing.T, root, name string) frozen.Box {
	t.Helper()
	b := frozen.Box{Dir: filepath.Join(root, "golden", name), Owner: frozen.Owner{UID: -1, GID: -1}}
	must(t, os.MkdirAll(b.Dir, 0o700))
	return b
}

// draft makes a golden from a sandbox.
func draft(t *testing.T, root, name string, from frozen.Box, paths ...string) (frozen.Box, *frozen.Draft) {
	t.Helper()
	g := golden(t, root, name)
	d, err := g.Draft()
	must(t, err)
	must(t, d.Fill(from, paths))
	must(t, d.Keep())
	return g, d
}

// A golden brings directories, regular files and symbolic links, of the
// requested paths, and nothing that a sandbox has planted among them.
func TestGoldenHoldsOnlyFiles(t *testing.T) {
	t.Parallel()
	root, outside := t.TempDir(), t.TempDir()
	must(t, os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o600))
	b := box(t, root, "one")
	for _, part := range []string{"upper/ignored", "home", "caches/npm/upper"} {
		must(t, os.MkdirAll(filepath.Join(b.Dir, part), 0o755))
		plant(t, filepath.Join(b.Dir, part), outside)
	}
	for name, want := range map[string]fs.FileMode{"setuid": fs.ModeSetuid, "pipe": fs.ModeNamedPipe, "whiteout": fs.ModeCharDevice} {
		if info, err := os.Lstat(filepath.Join(b.Dir, "home", name)); err != nil || info.Mode()&want == 0 {
			t.Fatalf("%s was not planted: %v", name, err)
		}
	}
	_, d := draft(t, root, "g", b, "ignored")
	layer := filepath.Join(root, "frozen", d.Name)
	for _, part := range []string{"below/ignored", "home", "caches/npm"} { // an ordinary user cannot look into closed directories
		must(t, os.Chmod(filepath.Join(layer, part, "closed"), 0o700))
		must(t, os.Chmod(filepath.Join(layer, part, "closed/file"), 0o600))
	}
	for _, line := range listing(t, layer) {
		fields := strings.Fields(line)
		if kind := fields[1][0]; kind != '-' && kind != 'd' && kind != 'L' {
			t.Errorf("it holds %s", line)
		}
		if strings.Contains(line, " secret") {
			t.Errorf("a link was followed: %s", line)
		}
		if strings.HasPrefix(fields[0], "below/file") {
			t.Errorf("it holds what was not asked for: %s", line)
		}
		size, err := unix.Llistxattr(filepath.Join(layer, fields[0]), nil)
		must(t, err)
		list := make([]byte, size+1)
		n, err := unix.Llistxattr(filepath.Join(layer, fields[0]), list)
		must(t, err)
		if strings.Contains(string(list[:n]), "overlay") {
			t.Errorf("%s has attributes of an overlay: %q", fields[0], list[:n])
		}
	}
	for _, kept := range []string{"below/ignored/attributed/kept", "home/closed/file", "caches/npm/file"} {
		if _, err := os.Lstat(filepath.Join(layer, kept)); err != nil {
			t.Error(err)
		}
	}
}

// A golden made above another holds what that shows, without what was removed.
func TestGoldenAboveAGolden(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	b := box(t, root, "one")
	for path, content := range map[string]string{"upper/build/a": "a", "upper/build/b": "b", "upper/build/old/x": "x", "home/kept": "kept", "home/gone": "gone"} {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(b.Dir, path)), 0o755))
		must(t, os.WriteFile(filepath.Join(b.Dir, path), []byte(content), 0o644))
	}
	g, first := draft(t, root, "g", b, "build")
	next := box(t, root, "two")
	must(t, g.Fork(first.Name, next))
	for path, content := range map[string]string{"upper/build/a": "new", "upper/build/old/y": "y", "home/more": "more"} {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(next.Dir, path)), 0o755))
		must(t, os.WriteFile(filepath.Join(next.Dir, path), []byte(content), 0o644))
	}
	for _, path := range []string{"upper/build/b", "home/gone"} {
		must(t, unix.Mknod(filepath.Join(next.Dir, path), unix.S_IFCHR, 0))
	}
	must(t, unix.Setxattr(filepath.Join(next.Dir, "upper/build/old"), "user.overlay.opaque", []byte("y"), 0))
	_, second := draft(t, root, "g2", next, "build")
	var files []string
	for _, line := range listing(t, filepath.Join(root, "frozen", second.Name)) {
		if fields := strings.Fields(line); fields[1][0] != 'd' {
			files = append(files, fields[0]+" "+fields[len(fields)-1])
		}
	}
	slices.Sort(files)
	want := []string{"below/build/a new", "below/build/old/y y", "caches/npm/file two", "home/file one", "home/kept kept", "home/more more"}
	if diff := cmp.Diff(want, files); diff != "" {
		t.Errorf("- want, + got:\n%s", diff)
	}
	// Both are needed by the sandboxes on them, and by nothing else.
	unused, err := frozen.Unused(filepath.Join(root, "frozen"), func() ([]string, error) { return []string{next.Dir, filepath.Join(root, "golden/g2")}, nil })
	must(t, err)
	if len(unused) != 0 {
		t.Errorf("%q are unused", unused)
	}
	unused, err = frozen.Unused(filepath.Join(root, "frozen"), func() ([]string, error) { return []string{next.Dir}, nil })
	must(t, err)
	if diff := cmp.Diff([]string{second.Name}, unused); diff != "" {
		t.Errorf("unused: - want, + got:\n%s", diff)
	}
}

type entry struct {
	header  tar.Header
	content string
}

func file(name, content string) entry {
	return entry{tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644}, content}
}

func dir(name string) entry {
	return entry{tar.Header{Name: name, Typeflag: tar.TypeDir, Mode: 0o755}, ""}
}

func archive(t *testing.T, entries ...entry) *tar.Reader {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, one := range entries {
		one.header.Size, one.header.ModTime, one.header.Format = int64(len(one.content)), time.Unix(1e9, 0), tar.FormatPAX
		must(t, w.WriteHeader(&one.header))
		_, err := w.Write([]byte(one.content))
		must(t, err)
	}
	must(t, w.Close())
	return tar.NewReader(&out)
}

// An archive of any origin brings only files into its own layer.
func TestUnpackRefuses(t *testing.T) {
	t.Parallel()
	special := func(name string, kind byte) entry {
		return entry{tar.Header{Name: name, Typeflag: kind, Mode: 0o644}, ""}
	}
	link := func(name, to string, kind byte) entry {
		return entry{tar.Header{Name: name, Linkname: to, Typeflag: kind, Mode: 0o777}, ""}
	}
	mode := func(e entry, mode int64) entry { e.header.Mode = mode; return e }
	attribute := func(e entry, name string) entry {
		e.header.PAXRecords = map[string]string{"SCHILY.xattr." + name: "y"}
		return e
	}
	outside := t.TempDir()
	for name, evil := range map[string][]entry{
		"a device":                       {special("home/null", tar.TypeChar)},
		"a whiteout":                     {special("below/hidden", tar.TypeChar)},
		"a disk":                         {special("home/sda", tar.TypeBlock)},
		"a pipe":                         {special("home/pipe", tar.TypeFifo)},
		"a set-user-id bit":              {mode(file("home/su", "x"), 0o4755)},
		"a set-group-id bit":             {mode(file("home/sg", "x"), 0o2755)},
		"a set-id directory":             {mode(dir("home/d/"), 0o2755)},
		"an opaque directory":            {attribute(dir("below/d/"), "user.overlay.opaque")},
		"a redirected directory":         {attribute(dir("below/d/"), "trusted.overlay.redirect")},
		"a capability":                   {attribute(file("home/ping", "x"), "security.capability")},
		"a name above":                   {file("../evil", "x")},
		"a name above, from inside":      {file("home/../../evil", "x")},
		"an absolute name":               {file(outside+"/evil", "x")},
		"another part":                   {file("upper/evil", "x")},
		"the layer itself":               {file("evil", "x")},
		"no cache":                       {dir("caches/"), dir("caches/../evil/")},
		"a way through a link":           {link("home/out", outside, tar.TypeSymlink), file("home/out/evil", "x")},
		"a way through a link above":     {link("home/out", "..", tar.TypeSymlink), file("home/out/evil", "x")},
		"a file over a link":             {link("home/out", outside+"/evil", tar.TypeSymlink), file("home/out", "x")},
		"a hard link out":                {link("home/out", "../../../../etc/passwd", tar.TypeLink)},
		"a hard link to the host":        {link("home/out", "/etc/passwd", tar.TypeLink)},
		"a hard link through a link":     {link("home/etc", "/etc", tar.TypeSymlink), link("home/out", "home/etc/passwd", tar.TypeLink)},
		"a hard link to another part":    {file("below/a", "x"), link("home/out", "below/a", tar.TypeLink)},
		"a hard link to a link":          {link("home/a", "/etc/passwd", tar.TypeSymlink), link("home/out", "home/a", tar.TypeLink)},
		"a directory over a file":        {file("home/a", "x"), dir("home/a/")},
		"a part that is not a directory": {file("caches", "x")},
		"a part in place of the other":   {link("below", outside, tar.TypeSymlink)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			honest := []entry{dir("home/"), file("home/honest", "x"), link("home/anywhere", "/usr/bin/python3", tar.TypeSymlink), link("home/again", "home/honest", tar.TypeLink)}
			// The control: without the evil entry it is taken.
			d, err := golden(t, root, "good").Draft()
			must(t, err)
			if err := d.Unpack(archive(t, honest...)); err != nil {
				t.Fatalf("an honest archive is refused: %v", err)
			}
			must(t, d.Keep())
			d, err = golden(t, root, "bad").Draft()
			must(t, err)
			err = d.Unpack(archive(t, slices.Concat(honest, evil)...))
			if err == nil {
				t.Fatalf("it is taken:\n%s", strings.Join(listing(t, d.Dir), "\n"))
			}
			if kind := fault.KindOf(err); kind != fault.Denied && kind != fault.Unavailable {
				t.Errorf("it is refused as %s: %v", kind, err)
			}
			if found := listing(t, outside); len(found) != 0 {
				t.Errorf("outside there is %q", found)
			}
			for _, line := range listing(t, d.Dir) {
				if fields := strings.Fields(line); !strings.Contains("-dL", fields[1][:1]) {
					t.Errorf("left in the layer: %s", line)
				}
			}
		})
	}
}

// A packed layer is unpacked as it was.
func TestPackAndUnpack(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	b := box(t, root, "one")
	must(t, os.MkdirAll(filepath.Join(b.Dir, "upper/dir/build"), 0o750))
	must(t, os.WriteFile(filepath.Join(b.Dir, "upper/dir/build/out"), []byte("out"), 0o640))
	must(t, os.Link(filepath.Join(b.Dir, "upper/dir/build/out"), filepath.Join(b.Dir, "upper/dir/build/twice")))
	must(t, os.Symlink("/usr/bin/env", filepath.Join(b.Dir, "home/link")))
	g, d := draft(t, root, "g", b, "dir/build")
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	must(t, g.Pack(d.Name, w))
	must(t, w.Close())
	copied, err := golden(t, root, "copy").Draft()
	must(t, err)
	must(t, copied.Unpack(tar.NewReader(&out)))
	if diff := cmp.Diff(listing(t, filepath.Join(root, "frozen", d.Name)), listing(t, copied.Dir)); diff != "" {
		t.Errorf("- packed, + unpacked:\n%s", diff)
	}
	var st unix.Stat_t
	must(t, unix.Lstat(filepath.Join(copied.Dir, "below/dir/build/out"), &st))
	if st.Nlink != 2 {
		t.Errorf("a file with two names has %d", st.Nlink)
	}
}

// A search finds a text wherever it is: even across the ends of reads, in names
// and in the targets of links.
func TestSearch(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := "the-value-of-it"
	large := bytes.Repeat([]byte("x"), 1<<20)
	copy(large[256<<10-7:], text)
	must(t, os.WriteFile(filepath.Join(dir, "large"), large, 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "end"), append(bytes.Repeat([]byte("y"), 512<<10-len(text)), text...), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "without"), []byte("the-value-of-i"), 0o600))
	must(t, os.Mkdir(filepath.Join(dir, "d"), 0o700))
	must(t, os.WriteFile(filepath.Join(dir, "d", "a "+text), nil, 0o600))
	must(t, os.Symlink("/"+text, filepath.Join(dir, "d", "link")))
	found, err := frozen.Search(dir, [][]byte{[]byte("nothing like it"), []byte(text)})
	must(t, err)
	var paths []string
	for _, one := range found {
		if one.Text != 1 {
			t.Errorf("%s has text %d", one.Path, one.Text)
		}
		paths = append(paths, one.Path)
	}
	slices.Sort(paths)
	if diff := cmp.Diff([]string{"d/a " + text, "d/link", "end", "large"}, paths); diff != "" {
		t.Errorf("- want, + got:\n%s", diff)
	}
}
