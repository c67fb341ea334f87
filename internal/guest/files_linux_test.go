package guest_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

func TestRead(t *testing.T) {
	large := strings.Repeat("0123456789abcdef", 20000)
	b := newBox(t, func(lower string) {
		write(t, filepath.Join(lower, "d/file"), "hello", 0o640)
		write(t, filepath.Join(lower, "large"), large, 0o755)
		write(t, filepath.Join(lower, "closed"), "x", 0)
		if err := os.Symlink("d/file", filepath.Join(lower, "link")); err != nil {
			t.Fatal(err)
		}
	})
	b.sh("mkfifo fifo")
	for _, c := range []struct {
		path          string
		offset, limit int64
		want          string
		mode          uint32
		kind          fault.Kind
	}{
		{path: "d/file", want: "hello", mode: 0o640},
		{path: b.workspace + "/d/file", offset: 1, limit: 3, want: "ell", mode: 0o640},
		{path: "d/file", offset: 9, mode: 0o640},
		{path: "link", want: "hello", mode: 0o640},
		{path: "large", want: large, mode: 0o755},
		{path: "gone", kind: fault.NotFound},
		{path: "d", kind: fault.Invalid},
		{path: "d/file/x", kind: fault.Invalid},
		{path: "fifo", kind: fault.Invalid},
		{path: "/dev/null", kind: fault.Invalid},
		{path: "closed", kind: fault.Denied},
		{path: "", kind: fault.Invalid},
		{path: "a\x00b", kind: fault.Invalid},
		{path: "d/file", offset: -1, kind: fault.Invalid},
	} {
		var got bytes.Buffer
		info, err := wire.Read(limit(t), b.open(), []byte(c.path), c.offset, c.limit, &got)
		if fault.KindOf(err) != c.kind {
			t.Errorf("%q: %v", c.path, err)
		} else if got.String() != c.want || info.Mode != c.mode {
			t.Errorf("%q: %d bytes, %+v", c.path, got.Len(), info)
		}
	}
}

func TestWrite(t *testing.T) {
	b := newBox(t, func(lower string) {
		write(t, filepath.Join(lower, "script"), "old", 0o750)
		write(t, filepath.Join(lower, ".git/HEAD"), "ref: refs/heads/main\n", 0o644)
		if err := os.Symlink("script", filepath.Join(lower, "link")); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("nowhere", filepath.Join(lower, "dangling")); err != nil {
			t.Fatal(err)
		}
	})
	b.sh("mkfifo fifo")
	for _, c := range []struct {
		path, real, content string
		mode, want          uint32
		kind                fault.Kind
	}{
		{path: "new/deep/\xff file", content: "hello", want: 0o644},
		{path: "script", content: "new", want: 0o750},
		{path: "script", content: "", mode: 0o600, want: 0o600},
		{path: "link", real: "script", content: strings.Repeat("x", 1<<20), want: 0o600},
		{path: b.dir + "/home/file", content: "outside of the workspace", want: 0o644},
		{path: "new", kind: fault.Invalid},
		{path: "other/", kind: fault.Invalid},
		{path: "script/below", kind: fault.Invalid},
		{path: "fifo", kind: fault.Invalid},
		{path: "dangling", kind: fault.Invalid},
		{path: "/proc/file", kind: fault.NotFound},
	} {
		info, err := wire.Write(limit(t), b.open(), []byte(c.path), c.mode, strings.NewReader(c.content))
		if fault.KindOf(err) != c.kind {
			t.Errorf("%q: %v", c.path, err)
		}
		if err != nil {
			continue
		}
		path := c.path
		if c.real != "" {
			path = c.real
		}
		if !filepath.IsAbs(path) {
			path = filepath.Join(b.workspace, path)
		}
		want := wire.FileInfo{Path: []byte(path), Size: int64(len(c.content)), Mode: c.want}
		if diff := cmp.Diff(want, info); diff != "" {
			t.Errorf("%q: %s", c.path, diff)
		}
		var got bytes.Buffer
		read, err := wire.Read(limit(t), b.open(), []byte(c.path), 0, 0, &got)
		if err != nil || got.String() != c.content || !cmp.Equal(want.Mode, read.Mode) {
			t.Errorf("%q: read back %d bytes, %+v, %v", c.path, got.Len(), read, err)
		}
	}
	if got := b.sh("ls .git; readlink link"); got != "HEAD\nscript" {
		t.Errorf("left behind: %s", got)
	}
}

// A write that breaks off leaves the old file, and nothing beside it.
func TestWriteBreaksOff(t *testing.T) {
	b := newBox(t, func(lower string) { write(t, filepath.Join(lower, "file"), "old", 0o644) })
	broken := errors.New("cable pulled")
	_, err := wire.Write(limit(t), b.open(), []byte("file"), 0, io.MultiReader(strings.NewReader("new"), failingReader{broken}))
	if !errors.Is(err, broken) {
		t.Errorf("error %v, want the reader's own", err)
	}
	eventually(t, "the part that came is gone", func() bool { return b.sh("ls -A; cat file") == "file\nold" })
}

type failingReader struct{ err error }

func (r failingReader) Read([]byte) (int, error) { return 0, r.err }

// entry holds what must survive a tar stream.
type entry struct {
	Name, Link, Content string
	Mode                fs.FileMode
}

func entries(t *testing.T, stream io.Reader) []entry {
	t.Helper()
	var all []entry
	for r := tar.NewReader(stream); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || h.Gid != 0 || h.Uname != "" {
			t.Errorf("%q names its owner", h.Name)
		}
		all = append(all, entry{h.Name, h.Linkname, string(content), h.FileInfo().Mode()})
	}
}

func TestPackAndUnpack(t *testing.T) {
	long := strings.Repeat("long/", 60) + "file"
	b := newBox(t, func(lower string) {
		write(t, filepath.Join(lower, "tree/run me"), "#!/bin/sh\n", 0o755)
		write(t, filepath.Join(lower, "tree/-\xff\n"), "odd", 0o600)
		write(t, filepath.Join(lower, "tree", long), strings.Repeat("z", 1<<20), 0o644)
		if err := os.Symlink("../../etc/passwd", filepath.Join(lower, "tree/link")); err != nil {
			t.Fatal(err)
		}
	})
	b.sh("mkfifo tree/fifo; mkdir tree/empty; chmod 555 tree/empty; touch -d @1000000000 tree/empty 'tree/run me'")

	var packed bytes.Buffer
	if err := wire.Pack(limit(t), b.open(), []byte("tree"), &packed); err != nil {
		t.Fatal(err)
	}
	got := map[string]entry{}
	for _, e := range entries(t, bytes.NewReader(packed.Bytes())) {
		if !strings.HasPrefix(e.Name, "long/") || strings.HasSuffix(e.Name, "file") {
			got[e.Name] = e
		}
	}
	want := map[string]entry{}
	for _, e := range []entry{
		{"./", "", "", fs.ModeDir | 0o755},
		{"run me", "", "#!/bin/sh\n", 0o755},
		{"-\xff\n", "", "odd", 0o600},
		{long, "", strings.Repeat("z", 1<<20), 0o644},
		{"link", "../../etc/passwd", "", fs.ModeSymlink | 0o777},
		{"empty/", "", "", fs.ModeDir | 0o555},
	} {
		want[e.Name] = e
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}

	if err := wire.Unpack(limit(t), b.open(), []byte("copy/of"), bytes.NewReader(packed.Bytes())); err != nil {
		t.Fatal(err)
	}
	if diff := b.sh(`rm tree/fifo; diff -r --no-dereference tree copy/of; stat -c '%a %Y' copy/of/empty "copy/of/run me"`); diff != "555 1000000000\n755 1000000000" {
		t.Error(diff)
	}

	packed.Reset()
	if err := wire.Pack(limit(t), b.open(), []byte("tree/run me"), &packed); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]entry{{"run me", "", "#!/bin/sh\n", 0o755}}, entries(t, &packed)); diff != "" {
		t.Error(diff)
	}
	if err := wire.Pack(limit(t), b.open(), []byte("gone"), io.Discard); fault.KindOf(err) != fault.NotFound {
		t.Error(err)
	}
}

func TestUnpackStaysInside(t *testing.T) {
	b := newBox(t, func(lower string) {
		if err := os.Mkdir(filepath.Join(lower, "in"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("..", filepath.Join(lower, "in/up")); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(lower, "outside"), "kept", 0o644)
		if err := os.Symlink("../outside", filepath.Join(lower, "in/target")); err != nil {
			t.Fatal(err)
		}
	})
	for _, h := range []tar.Header{
		{Name: "../evil"},
		{Name: "/evil"},
		{Name: "a/../../evil"},
		{Name: "up/evil"},
		{Name: "hard", Typeflag: tar.TypeLink, Linkname: "../outside"},
		{Name: "hard", Typeflag: tar.TypeLink, Linkname: "up/outside"},
		{Name: "fifo", Typeflag: tar.TypeFifo},
		{Name: "dev", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3},
	} {
		if h.Typeflag == 0 {
			h.Typeflag = tar.TypeReg
		}
		var stream bytes.Buffer
		w := tar.NewWriter(&stream)
		h.Mode = 0o644
		if err := errors.Join(w.WriteHeader(&h), w.Close()); err != nil {
			t.Fatal(err)
		}
		if err := wire.Unpack(limit(t), b.open(), []byte("in"), &stream); err == nil {
			t.Errorf("%q was taken", h.Name)
		}
	}
	// An existing file is replaced, not written through.
	var stream bytes.Buffer
	w := tar.NewWriter(&stream)
	content := "new"
	err := errors.Join(w.WriteHeader(&tar.Header{Name: "target", Mode: 0o644, Size: int64(len(content)), ModTime: time.Unix(1, 0)}), func() error { _, err := io.WriteString(w, content); return err }(), w.Close())
	if err != nil {
		t.Fatal(err)
	}
	if err := wire.Unpack(limit(t), b.open(), []byte("in"), &stream); err != nil {
		t.Error(err)
	}
	if err := wire.Unpack(limit(t), b.open(), []byte("in"), strings.NewReader("no archive, and long enough to be a header?"+strings.Repeat("x", 600))); fault.KindOf(err) != fault.Invalid {
		t.Error(err)
	}
	want := "in outside\nkeptnew"
	if got := b.sh(`echo $(ls); cat outside in/target`); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestMalformedRequests(t *testing.T) {
	b := newBox(t)
	for _, c := range []struct {
		kind    wire.Kind
		payload string
		want    fault.Kind
	}{
		{wire.KindStdin, "{}", fault.Invalid},
		{wire.KindRequest, "{", fault.Invalid},
		{wire.KindRequest, `{"version":1,"op":"fly"}`, fault.Unsupported},
		{wire.KindRequest, `{"version":2,"op":"hello"}`, fault.Unavailable},
		{wire.KindRequest, `{"version":1,"op":"exec"}`, fault.Invalid},
		{wire.KindRequest, `{"version":1,"op":"read"}`, fault.Invalid},
		{wire.KindRequest, `{"version":1,"op":"export","want":"--all"}`, fault.Invalid},
	} {
		s := b.open()
		if err := wire.WriteFrame(s, c.kind, []byte(c.payload)); err != nil {
			t.Fatal(err)
		}
		kind, payload, err := wire.NewReader(s).Next()
		if err != nil || kind != wire.KindError || !strings.Contains(string(payload), fmt.Sprintf(`"kind":%q`, c.want)) {
			t.Errorf("%s: %q %s %v", c.payload, kind, payload, err)
		}
	}
}
