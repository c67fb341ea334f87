package guest_test

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// Many small files are made several at once: the last of one name stays, what
// comes later finds those before it, and nothing half is left when one cannot be
// made or the archive breaks off.
func TestUnpackManySmallFiles(t *testing.T) {
	b := newBox(t, func(lower string) {
		write(t, filepath.Join(lower, ".git/HEAD"), "ref: refs/heads/main\n", 0o644)
		write(t, filepath.Join(lower, "full/kept"), "old", 0o644)
	})
	var stream bytes.Buffer
	w := tar.NewWriter(&stream)
	add := func(h tar.Header, content string) {
		h.Mode, h.Size = 0o644, int64(len(content))
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, content); err != nil {
			t.Fatal(err)
		}
	}
	for round := range 3 {
		for i := range 400 {
			add(tar.Header{Name: fmt.Sprintf("d%d/f%d", i/100, i)}, fmt.Sprintln(round, i))
		}
	}
	for range 20 {
		add(tar.Header{Name: "d3/same"}, "one")
		add(tar.Header{Name: "d3/same"}, strings.Repeat("large", 40_000))
		add(tar.Header{Name: "d3/same"}, "last")
	}
	add(tar.Header{Name: "d3/hard", Typeflag: tar.TypeLink, Linkname: "d3/same"}, "")
	add(tar.Header{Name: "d3/f399", Typeflag: tar.TypeSymlink, Linkname: "same"}, "")
	whole := stream.Len()
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	unpack := func(archive []byte) error {
		return wire.Unpack(limit(t), b.open(), []byte("."), bytes.NewReader(archive))
	}
	const state = "cat d0/f7 d2/f250 d3/f398 d3/f399; test d3/same -ef d3/hard && ls d0 d1 d2 d3 | wc -w; find . -name 'litterbox-write-*'"
	if err := unpack(stream.Bytes()); err != nil {
		t.Fatal(err)
	}
	if got, want := b.sh(state), "2 7\n2 250\n2 398\nlast406"; strings.ReplaceAll(got, "last\n", "last") != want {
		t.Errorf("got %q, want %q", got, want)
	}
	add(tar.Header{Name: "full"}, "in the place of a directory that holds something")
	for i := range 50 {
		add(tar.Header{Name: fmt.Sprintf("later%d", i)}, "late")
	}
	if err := unpack(stream.Bytes()); err == nil || !strings.Contains(err.Error(), `cannot make "full"`) {
		t.Errorf("error %v", err)
	}
	if err := unpack(stream.Bytes()[:whole/4+100]); err == nil {
		t.Error("an archive that breaks off is taken")
	}
	if got := b.sh("cat full/kept; find . -name 'litterbox-write-*'"); got != "old" {
		t.Errorf("left behind: %q", got)
	}
}
