package image_test

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/litterbox-sandbox/litterbox/internal/image"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// built is an image made by another implementation, from the test's own tars.
func built(t *testing.T, config v1.Config, layers ...[]byte) v1.Image {
	t.Helper()
	img, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{OS: "linux", Architecture: runtime.GOARCH, Config: config})
	if err != nil {
		t.Fatal(err)
	}
	for _, content := range layers {
		l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil })
		if err != nil {
			t.Fatal(err)
		}
		if img, err = mutate.AppendLayers(img, l); err != nil {
			t.Fatal(err)
		}
	}
	return img
}

// archive writes a layer's tar.
func archive(t *testing.T, headers ...tar.Header) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, h := range headers {
		content := h.Uname // the one field that is not read: the file's content
		h.Uname = ""
		if h.Typeflag == 0 {
			h.Typeflag = tar.TypeReg
		}
		if h.Mode == 0 {
			h.Mode = 0o644
		}
		if h.Typeflag == tar.TypeReg && h.Size == 0 {
			h.Size = int64(len(content))
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func file(name, content string) tar.Header { return tar.Header{Name: name, Uname: content} }

func dir(name string) tar.Header {
	return tar.Header{Name: name, Typeflag: tar.TypeDir, Mode: 0o755}
}

func symlink(name, target string) tar.Header {
	return tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: target}
}

func hardlink(name, target string) tar.Header {
	return tar.Header{Name: name, Typeflag: tar.TypeLink, Linkname: target}
}

func store(t *testing.T) image.Store {
	t.Helper()
	return image.Store{Dir: filepath.Join(t.TempDir(), "images")}
}

func must(t *testing.T, typed string) image.Source {
	t.Helper()
	source, err := image.Parse(typed)
	if err != nil {
		t.Fatal(err)
	}
	return source
}

// listing describes the entries below a layer's directory, one line each.
func listing(t *testing.T, dir string) map[string]string {
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
		switch mode := info.Mode(); {
		case mode&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			found[name] = "-> " + target
			return err
		case mode&fs.ModeCharDevice != 0:
			found[name] = fmt.Sprintf("whiteout %d", info.Sys().(*syscall.Stat_t).Rdev)
		case mode.IsDir():
			found[name] = mode.String()
			if opaque(path) {
				found[name] += " opaque"
			}
		default:
			content, err := os.ReadFile(path)
			found[name] = mode.String() + " " + string(content)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// Every way to an image gives the same layers, whichever program wrote it.
func TestImageFromEverySource(t *testing.T) {
	t.Parallel()
	config := v1.Config{Env: []string{"PATH=/opt/bin:/bin", "A=b=c", "broken"}, WorkingDir: "/app", User: "node:staff"}
	lower := archive(t, dir("etc/"), file("etc/name", "lower"), file("gone", "x"), symlink("bin", "usr/bin"))
	upper := archive(t, file("./etc/name", "upper"), file(".wh.gone", ""))
	img := built(t, config, lower, upper)
	digest, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	id, err := img.ConfigName()
	if err != nil {
		t.Fatal(err)
	}
	for _, source := range []struct {
		name, typed string
		digest      v1.Hash
	}{
		{"layout", "oci:" + writeLayout(t, img, ""), digest},
		{"named in a layout", "oci:" + writeLayout(t, img, "12") + ":12", digest},
		{"archive", "docker-archive:" + writeArchive(t, img), id},
		{"named in an archive", "docker-archive:" + writeArchive(t, img) + ":debian:12", id},
		{"registry", push(t, img) + "/some/image:tag", digest},
		{"registry by digest", push(t, img) + "/some/image@" + digest.String(), digest},
	} {
		t.Run(source.name, func(t *testing.T) {
			t.Parallel()
			s := store(t)
			got, err := s.Image(t.Context(), must(t, source.typed), false)
			if err != nil {
				t.Fatal(err)
			}
			want := sandbox.Image{
				Reference: must(t, source.typed).String(), Digest: source.digest.String(), Layers: diffIDs(t, img),
				Env: []string{"PATH=/opt/bin:/bin", "A=b=c"}, WorkingDir: "/app", User: "node",
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(- want, + got):\n%s", diff)
			}
			layers, err := s.Layers(t.Context(), got)
			if err != nil || len(layers) != 2 {
				t.Fatalf("layers %q, %v", layers, err)
			}
			if diff := cmp.Diff([]map[string]string{
				{"etc": "drwxr-xr-x", "etc/name": "-rw-r--r-- upper", "gone": "whiteout 0"},
				{"etc": "drwxr-xr-x", "etc/name": "-rw-r--r-- lower", "gone": "-rw-r--r-- x", "bin": "-> usr/bin"},
			}, []map[string]string{listing(t, layers[0]), listing(t, layers[1])}); diff != "" {
				t.Errorf("(- want, + got):\n%s", diff)
			}
			for path, want := range map[string]bool{"/etc/name": true, "/gone": false, "/bin": false, "/etc": true, "/etc/no": false, "/etc/name/x": false} {
				if image.Has(layers, path) != want {
					t.Errorf("%s: found %t, want %t", path, !want, want)
				}
			}
		})
	}
}

func diffIDs(t *testing.T, img v1.Image) []string {
	t.Helper()
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, id := range config.RootFS.DiffIDs {
		ids = append(ids, id.String())
	}
	return ids
}

func writeLayout(t *testing.T, img v1.Image, name string) string {
	t.Helper()
	dir := t.TempDir()
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	var options []layout.Option
	if name != "" {
		options = append(options, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": name}))
		if err := path.AppendImage(built(t, v1.Config{}, archive(t, file("other", ""))), layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": "other"})); err != nil {
			t.Fatal(err)
		}
	}
	if err := path.AppendImage(img, options...); err != nil {
		t.Fatal(err)
	}
	return dir
}

func writeArchive(t *testing.T, img v1.Image) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "image.tar")
	tag, err := name.NewTag("docker.io/library/debian:12")
	if err != nil {
		t.Fatal(err)
	}
	if err := tarball.WriteToFile(file, tag, img); err != nil {
		t.Fatal(err)
	}
	return file
}

// push serves a registry on loopback with the image in it, and returns its address.
func push(t *testing.T, img v1.Image) string {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(quiet())))
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	tag, err := name.NewTag(host + "/some/image:tag")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(tag, img); err != nil {
		t.Fatal(err)
	}
	return host
}

// Existing layers are not fetched again, deleted ones are, and many at once all
// get whole layers.
func TestLayersAreShared(t *testing.T) {
	t.Parallel()
	shared := archive(t, file("shared", strings.Repeat("x", 1<<20)))
	first := "oci:" + writeLayout(t, built(t, v1.Config{}, shared, archive(t, file("a", ""))), "")
	second := "oci:" + writeLayout(t, built(t, v1.Config{}, shared, archive(t, file("b", ""))), "")
	s := store(t)
	errs := make(chan error, 20)
	for i := range cap(errs) {
		source := must(t, []string{first, second}[i%2])
		go func() {
			_, err := s.Image(context.Background(), source, false)
			errs <- err
		}()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	entries, err := filepath.Glob(filepath.Join(s.Dir, "layers", "*"))
	if err != nil {
		t.Fatal(err)
	}
	var layers []string
	for _, entry := range entries {
		switch filepath.Ext(entry) {
		case "":
			layers = append(layers, entry)
		case ".lock":
		default:
			t.Errorf("left behind: %s", entry)
		}
	}
	if len(layers) != 3 {
		t.Fatalf("two images that share one of two layers have %q", layers)
	}
	got, err := s.Image(t.Context(), must(t, first), false)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(layers[0]); err != nil {
		t.Fatal(err)
	}
	for _, typed := range []string{first, second} {
		if _, err := s.Image(t.Context(), must(t, typed), false); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Layers(t.Context(), got); err != nil || !image.Has(layers[:1], "/shared") && !image.Has(layers[:1], "/a") && !image.Has(layers[:1], "/b") {
		t.Errorf("a deleted layer did not come back: %v", err)
	}
}

// A tag means what it meant when it was first pulled, until the registry is
// asked.
func TestTagMovesOnlyWhenAsked(t *testing.T) {
	t.Parallel()
	old := built(t, v1.Config{}, archive(t, file("old", "")))
	host := push(t, old)
	source, s := must(t, host+"/some/image:tag"), store(t)
	first, err := s.Image(t.Context(), source, false)
	if err != nil {
		t.Fatal(err)
	}
	tag, err := name.NewTag(host + "/some/image:tag")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(tag, built(t, v1.Config{}, archive(t, file("new", "")))); err != nil {
		t.Fatal(err)
	}
	again, err := s.Image(t.Context(), source, false)
	if diff := cmp.Diff(first, again); diff != "" || err != nil {
		t.Errorf("the tag moved unasked (%v):\n%s", err, diff)
	}
	fresh, err := s.Image(t.Context(), source, true)
	if err != nil || fresh.Digest == first.Digest {
		t.Errorf("asked, the tag still is %s (%v)", fresh.Digest, err)
	}
	// The sandbox of the old image finds it by its digest, though nothing of it is left
	// here.
	if err := os.RemoveAll(filepath.Join(s.Dir, "layers")); err != nil {
		t.Fatal(err)
	}
	layers, err := s.Layers(t.Context(), first)
	if err != nil || !image.Has(layers, "/old") {
		t.Errorf("the image that the tag stood for first is not found by its digest: %v", err)
	}
}

func TestProgress(t *testing.T) {
	t.Parallel()
	s := store(t)
	random := bytes.Repeat([]byte("0123456789abcdef"), 1<<18) // 4 MB, which gzip makes small
	var calls []string
	s.Progress = func(label string, done, total int) { calls = append(calls, fmt.Sprint(label, done, total)) }
	path := writeArchive(t, built(t, v1.Config{}, archive(t, file("f", string(random)))))
	if _, err := s.Image(t.Context(), must(t, "docker-archive:"+path), false); err != nil {
		t.Fatal(err)
	}
	last := "unpacking docker-archive:" + path + " (MB)1 1"
	if len(calls) == 0 || calls[len(calls)-1] != last {
		t.Errorf("progress was %q, and must end with %q", calls, last)
	}
}
