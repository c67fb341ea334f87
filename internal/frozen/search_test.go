package frozen_test

import (
	"archive/tar"
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/frozen"
)

func archived(t *testing.T, headers ...tar.Header) io.Reader {
	t.Helper()
	var out bytes.Buffer
	archive := tar.NewWriter(&out)
	for _, header := range headers {
		content := header.Gname // stands for it
		header.Gname, header.Mode = "", 0o644
		if header.Typeflag == tar.TypeReg {
			header.Size = int64(len(content))
		}
		if err := archive.WriteHeader(&header); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write([]byte(content)[:header.Size]); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	return &out
}

// A text is found in content, across the pieces that are read, in names and in the
// targets of links.
func TestSearchArchive(t *testing.T) {
	const text = "a-secret-value"
	archive := archived(
		t, tar.Header{Typeflag: tar.TypeDir, Name: "home/"},
		tar.Header{Typeflag: tar.TypeReg, Name: "home/none", Gname: "a-secret-valu"},
		tar.Header{Typeflag: tar.TypeReg, Name: "home/across", Gname: strings.Repeat("x", 256<<10-5) + text},
		tar.Header{Typeflag: tar.TypeSymlink, Name: "home/link", Linkname: "/" + text},
		tar.Header{Typeflag: tar.TypeReg, Name: "below/" + text + ".txt"},
	)
	found, err := frozen.SearchArchive(archive, [][]byte{[]byte(text)})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]frozen.Found{{Path: "home/across"}, {Path: "home/link"}, {Path: "below/" + text + ".txt"}}, found); diff != "" {
		t.Error(diff)
	}
}

// A hostile archive names nothing out of the layer, and is whole.
func TestSearchArchiveOfAHostileMachine(t *testing.T) {
	texts := [][]byte{[]byte("text")}
	for _, name := range []string{"../out", "/etc/passwd", "home/../../out"} {
		if found, err := frozen.SearchArchive(archived(t, tar.Header{Typeflag: tar.TypeReg, Name: name, Gname: "text"}), texts); fault.KindOf(err) != fault.Denied {
			t.Errorf("%s: %v, %v", name, found, err)
		}
	}
	var many []tar.Header
	for range 10_100 {
		many = append(many, tar.Header{Typeflag: tar.TypeReg, Name: "home/x", Gname: "text"})
	}
	if _, err := frozen.SearchArchive(archived(t, many...), texts); fault.KindOf(err) != fault.Denied {
		t.Errorf("ten thousand findings: %v", err)
	}
	if found, err := frozen.SearchArchive(strings.NewReader("no archive at all, and long enough to be read as the header of one"+strings.Repeat("x", 600)), texts); err == nil {
		t.Errorf("no archive: %v", found)
	}
}
