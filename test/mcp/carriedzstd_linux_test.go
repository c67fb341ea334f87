package mcp_test

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/klauspost/compress/zstd"

	"github.com/litterbox-sandbox/litterbox/test/program"
)

// unpacksZstd makes a sandbox with an image that is compressed with zstd, which the
// program that is typed leaves to the one that it carries.
func unpacksZstd(t *testing.T, h *program.Host, release string) {
	saved := filepath.Join(h.Dir, "image.tar.zst")
	compress(t, savedImage(t), saved)
	h.Put(filepath.Join(h.Home, ".config/litterbox/config.toml"), "container.base-image = \"docker-archive:"+saved+"\"\n")
	if got := h.Command(h.Repo, release, "run", "zstd", "--", "/bin/busybox", "echo", "unpacked"); got.Code != 0 || strings.TrimSpace(got.Stdout) != "unpacked" {
		t.Errorf("an image compressed with zstd: %+v", got)
	}
	content, err := os.ReadFile(saved)
	if err != nil {
		t.Fatal(err)
	}
	h.Put(saved, string(content[:len(content)/2]))
	if got := h.Command(h.Repo, release, "create", "cut"); got.Code == 0 || !strings.Contains(got.Stderr, "unexpected EOF") {
		t.Errorf("half of it: %+v", got)
	}
}

// savedImage is an image with a static busybox as docker saves it.
func savedImage(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("busybox")
	if err != nil {
		t.Skip("busybox-static is not installed: ", err)
	}
	busybox, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	for _, header := range []*tar.Header{
		{Name: "bin/", Typeflag: tar.TypeDir, Mode: 0o755},
		{Name: "bin/busybox", Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(busybox))},
	} {
		if err := w.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(busybox[:header.Size]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(layer.Bytes())), nil })
	if err != nil {
		t.Fatal(err)
	}
	img, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{OS: "linux", Architecture: runtime.GOARCH})
	if err == nil {
		img, err = mutate.AppendLayers(img, l)
	}
	if err != nil {
		t.Fatal(err)
	}
	saved := filepath.Join(t.TempDir(), "image.tar")
	if err := tarball.WriteToFile(saved, name.MustParseReference("test/busybox:1"), img); err != nil {
		t.Fatal(err)
	}
	return saved
}

func compress(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, w.EncodeAll(content, nil), 0o600); err != nil {
		t.Fatal(err)
	}
}
