package engine

import (
	"archive/tar"
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// The names of the images that [Engine.Import] makes.
const (
	Shell = "litterbox-test:shell" // busybox and the given programs
	Empty = "litterbox-test:empty" // no file at all
)

// Import makes the images, the first with programs that need no libc.
func (e *Engine) Import(programs ...string) {
	e.t.Helper()
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		e.t.Fatal(err)
	}
	var shell, empty bytes.Buffer
	t := tar.NewWriter(&shell)
	add := func(h tar.Header, content []byte) {
		h.Size = int64(len(content))
		err := t.WriteHeader(&h)
		if err == nil {
			_, err = t.Write(content)
		}
		if err != nil {
			e.t.Fatal(err)
		}
	}
	add(tar.Header{Name: "bin/", Typeflag: tar.TypeDir, Mode: 0o755}, nil)
	for _, path := range append([]string{busybox}, programs...) {
		content, err := os.ReadFile(path)
		if err != nil {
			e.t.Fatal(err)
		}
		add(tar.Header{Name: "bin/" + filepath.Base(path), Typeflag: tar.TypeReg, Mode: 0o755}, content)
	}
	for _, name := range strings.Fields("sh ls cat echo mkdir rm rmdir mv ln touch find readlink pwd env hostname chmod true false id grep wget nc ps sleep kill test dd uname stat head seq") {
		add(tar.Header{Name: "bin/" + name, Typeflag: tar.TypeSymlink, Linkname: filepath.Base(busybox)}, nil)
	}
	if err := errors.Join(t.Close(), tar.NewWriter(&empty).Close()); err != nil {
		e.t.Fatal(err)
	}
	for name, content := range map[string]*bytes.Buffer{Shell: &shell, Empty: &empty} {
		if _, err := e.Feed(content, "import", "-", name); err != nil {
			e.t.Fatal(err)
		}
	}
}
