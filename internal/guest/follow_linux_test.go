package guest_test

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// following is one entry of a follow: without content the path goes.
type following struct{ path, was, content, link string }

func archiveOf(t *testing.T, entries []following) *bytes.Buffer {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: e.path, Mode: 0o755, Size: int64(len(e.content)), Format: tar.FormatPAX, PAXRecords: map[string]string{wire.FollowWas: e.was}}
		switch {
		case e.link != "":
			h.Typeflag, h.Linkname = tar.TypeSymlink, e.link
		case e.content == "":
			h.PAXRecords[wire.FollowGone] = "1"
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(e.content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &b
}

func held(content string) string {
	sum := sha256.Sum256([]byte(content))
	return "file " + hex.EncodeToString(sum[:])
}

// A follow replaces files that are as expected, and nothing else.
func TestFollow(t *testing.T) {
	b := newBox(t, func(lower string) {
		for name, content := range map[string]string{
			".git/HEAD": "ref: refs/heads/main\n", "same": "old", "changed": "by the sandbox", "goes/deep": "old", "goes/kept": "ignored",
			"alone/deep": "old", "stays": "by the sandbox", "done": "new", "becomes/file": "old", "full/ignored": "x", "file": "old",
		} {
			write(t, filepath.Join(lower, name), content, 0o644)
		}
		if err := os.Symlink("nowhere", filepath.Join(lower, "link")); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("/tmp", filepath.Join(lower, "out")); err != nil {
			t.Fatal(err)
		}
	})
	entries := []following{
		{path: "goes/deep", was: held("old")}, {path: "alone/deep", was: held("old")}, {path: "stays", was: held("old")},
		{path: "missing", was: held("old")}, {path: "becomes/file", was: held("old")}, {path: "file", was: held("old")},
		{path: "same", was: held("old"), content: "new"}, {path: "changed", was: held("old"), content: "new"},
		{path: "done", was: held("old"), content: "new"}, {path: "added/here", was: wire.FollowNone, content: "new"},
		{path: "becomes", was: wire.FollowNone, content: "new"}, {path: "full", was: wire.FollowNone, content: "new"},
		{path: "file/now", was: wire.FollowNone, content: "new"}, {path: "changed/not", was: wire.FollowNone, content: "new"},
		{path: "link", was: "link nowhere", link: "same"},
	}
	for range 2 { // it may be repeated
		done, err := wire.Follow(limit(t), b.open(), archiveOf(t, entries))
		if err != nil {
			t.Fatal(err)
		}
		want := wire.Followed{Stayed: [][]byte{[]byte("stays"), []byte("changed"), []byte("full"), []byte("changed/not")}}
		if diff := cmp.Diff(want, done); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	got := b.sh("cat same changed done added/here becomes file/now stays link; readlink link; test -x same; find . -path ./.git -prune -o -type f -print | sort; ls -A .git")
	want := "newby the sandboxnewnewnewnewby the sandboxnewsame\n./added/here\n./becomes\n./changed\n./done\n./file/now\n./full/ignored\n./goes/kept\n./same\n./stays\nHEAD"
	if got != want {
		t.Errorf("inside:\n%s\nwant:\n%s", got, want)
	}
	// Neither git's own files nor anything outside the workspace.
	for _, path := range []string{".git/hooks/post-commit", "sub/.GIT/config", "../beside", "out/there"} {
		if done, err := wire.Follow(limit(t), b.open(), archiveOf(t, []following{{path: path, was: wire.FollowNone, content: "x"}})); err == nil && len(done.Stayed) != 1 {
			t.Errorf("%q was written", path)
		}
	}
	if _, err := wire.Follow(limit(t), b.open(), bytes.NewReader([]byte("no archive at all, but long enough to be read as one"))); fault.KindOf(err) != fault.Invalid {
		t.Errorf("no archive: %v", err)
	}
	b.sh("test ! -e .git/hooks && test ! -e /tmp/there")
}
