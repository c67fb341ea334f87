package image_test

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// busybox is the content of a static busybox.
func busybox(t *testing.T) []byte {
	t.Helper()
	path, err := exec.LookPath("busybox")
	if err == nil {
		if out, _ := exec.Command("ldd", path).CombinedOutput(); strings.Contains(string(out), "=>") {
			err = fmt.Errorf("%s needs libraries", path)
		}
	}
	if err != nil {
		if slices.Contains(strings.Split(os.Getenv("LITTERBOX_TEST_REQUIRE"), ","), "busybox") {
			t.Fatalf("busybox-static is not installed: %v", err)
		}
		t.Skipf("busybox-static is not installed: %v", err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// entry is one file of a layer; a name that ends with a slash is a directory.
type entry struct {
	name, content, link string
	mode                int64
	kind                byte
}

func layer(t *testing.T, entries ...entry) v1.Layer {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Mode: e.mode, Size: int64(len(e.content)), Linkname: e.link, Typeflag: e.kind}
		switch {
		case e.kind != 0:
		case strings.HasSuffix(e.name, "/"):
			h.Typeflag = tar.TypeDir
		case e.link != "":
			h.Typeflag = tar.TypeSymlink
		default:
			h.Typeflag = tar.TypeReg
		}
		if h.Mode == 0 {
			h.Mode = 0o755
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, e.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(out.Bytes())), nil })
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// programs is a layer with busybox under the names that the tests use.
func programs(t *testing.T) v1.Layer {
	t.Helper()
	entries := []entry{{name: "bin/busybox", content: string(busybox(t))}}
	for _, applet := range strings.Fields("sh cat ls id env touch grep stat test mkdir find readlink head chmod rm") {
		entries = append(entries, entry{name: "bin/" + applet, link: "busybox"})
	}
	return layer(t, append(entries, entry{name: "etc/"}, entry{name: "tmp/", mode: 0o1777}, entry{name: "proc/"})...)
}

func imageOf(t *testing.T, config v1.Config, layers ...v1.Layer) v1.Image {
	t.Helper()
	img, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{OS: "linux", Architecture: runtime.GOARCH, Config: config})
	if err == nil {
		img, err = mutate.AppendLayers(img, layers...)
	}
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func writeLayout(t *testing.T, img v1.Image) string {
	t.Helper()
	dir := t.TempDir()
	path, err := layout.Write(dir, empty.Index)
	if err == nil {
		err = path.AppendImage(img)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
