package image

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// packed writes a small tar.
func packed(f *testing.F, headers ...tar.Header) []byte {
	f.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, header := range headers {
		header.Format, header.Mode = tar.FormatPAX, 0o755
		if err := w.WriteHeader(&header); err != nil {
			f.Fatal(err)
		}
		if _, err := io.CopyN(w, strings.NewReader(strings.Repeat("x", int(header.Size))), header.Size); err != nil {
			f.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		f.Fatal(err)
	}
	return b.Bytes()
}

// FuzzExtract unpacks a hostile layer into a directory beside a file that it must
// not reach, and checks the result: only files, directories, links and whiteouts,
// which their owner can delete.
func FuzzExtract(f *testing.F) {
	f.Add(packed(f, tar.Header{Name: "../../outside", Typeflag: tar.TypeReg, Size: 3}))
	f.Add(packed(f, tar.Header{Name: "up", Typeflag: tar.TypeSymlink, Linkname: "../.."}, tar.Header{Name: "up/outside", Typeflag: tar.TypeReg, Size: 1}))
	f.Add(packed(f, tar.Header{Name: "hard", Typeflag: tar.TypeLink, Linkname: "../outside"}, tar.Header{Name: "d/.wh.gone", Typeflag: tar.TypeReg}))
	f.Add(packed(f, tar.Header{Name: "d", Typeflag: tar.TypeDir}, tar.Header{Name: "d/.wh..wh..opq", Typeflag: tar.TypeReg}, tar.Header{Name: "d/f", Typeflag: tar.TypeReg, Size: 5}))
	f.Add(packed(f, tar.Header{Name: "null", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3}, tar.Header{Name: "pipe", Typeflag: tar.TypeFifo}))
	f.Add([]byte("not a tar"))
	f.Fuzz(func(t *testing.T, content []byte) {
		top := t.TempDir()
		outside, dir := filepath.Join(top, "outside"), filepath.Join(top, "layer")
		if err := os.WriteFile(outside, []byte("untouched"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		_ = extract(t.Context(), bytes.NewReader(content), dir, Owner{}, Limits{Bytes: 1 << 20, Entries: 100})
		if now, err := os.ReadFile(outside); err != nil || string(now) != "untouched" {
			t.Fatalf("the file outside is %q, %v", now, err)
		}
		if beside, err := os.ReadDir(top); err != nil || len(beside) != 2 {
			t.Fatalf("beside the layer lie %v, %v", beside, err)
		}
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := entry.Info()
			if err != nil {
				return err
			}
			switch mode := info.Mode(); {
			case mode&(fs.ModeSetuid|fs.ModeSetgid) != 0, mode&(fs.ModeNamedPipe|fs.ModeSocket) != 0,
				mode&fs.ModeDevice != 0 && !hides(info):
				t.Errorf("%s is %v", path, mode)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzManifest reads a registry's description of an image. Whatever it is, an
// error says why, and an accepted layer has a digest that can be a file name.
func FuzzManifest(f *testing.F) {
	digest := "sha256:" + strings.Repeat("a", 64)
	f.Add([]byte(`{"manifests": [{"digest": "` + digest + `", "size": 2, "platform": {"os": "linux", "architecture": "amd64"}}]}`))
	f.Add([]byte(`{"layers": [{"digest": "` + digest + `", "size": -1}], "config": {"digest": "sha256:../../x"}}`))
	f.Add([]byte(`[{"Config": "a", "RepoTags": ["b"], "Layers": ["../c"]}]`))
	f.Fuzz(func(t *testing.T, content []byte) {
		var m manifest
		if json.Unmarshal(content, &m) != nil {
			return
		}
		if chosen, err := choose(m.Manifests, "name"); err == nil {
			m.Layers = append(m.Layers, chosen)
		}
		for _, d := range append(m.Layers, m.Config) {
			if d.check() != nil {
				continue
			}
			if strings.ContainsAny(d.Digest, "/\\\x00\n") || strings.Contains(d.Digest, "..") || d.Size < 0 {
				t.Fatalf("accepted %+v", d)
			}
		}
	})
}
