package image_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/image"
)

func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

func opaque(dir string) bool {
	mark := make([]byte, 1)
	n, err := unix.Lgetxattr(dir, "user.overlay.opaque", mark)
	return err == nil && string(mark[:n]) == "y"
}

// unpacked brings an image of one layer.
func unpacked(t *testing.T, s image.Store, headers ...tar.Header) (map[string]string, error) {
	t.Helper()
	got, err := s.Image(t.Context(), must(t, "oci:"+writeLayout(t, built(t, v1.Config{}, archive(t, headers...)), "")), false)
	if err != nil {
		return nil, err
	}
	layers, err := s.Layers(t.Context(), got)
	if err != nil {
		t.Fatal(err)
	}
	return listing(t, layers[0]), nil
}

// The entries of a layer's tar, and their results.
func TestExtract(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		tar  []tar.Header
		want map[string]string
	}{
		"modes lose what is dangerous": {
			[]tar.Header{
				{Name: "su", Mode: 0o4755}, {Name: "sg", Mode: 0o2711}, {Name: "secret", Mode: 0o040}, {Name: "d", Typeflag: tar.TypeDir, Mode: 0o3055},
				{Name: "tmp", Typeflag: tar.TypeDir, Mode: 0o1777},
			},
			map[string]string{
				"su": "-rwxr-xr-x ", "sg": "-rwx--x--x ", "secret": "-r--r----- ", "d": "dtrwxr-xr-x", "tmp": "dtrwxrwxrwx",
			},
		},
		"devices and pipes stay out": {
			[]tar.Header{
				{Name: "sda", Typeflag: tar.TypeBlock, Devmajor: 8}, {Name: "mem", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 1},
				{Name: "zero", Typeflag: tar.TypeChar}, {Name: "pipe", Typeflag: tar.TypeFifo}, file("stays", ""),
			},
			map[string]string{"stays": "-rw-r--r-- "},
		},
		"links lead nowhere else": {
			[]tar.Header{
				symlink("abs", "/"), symlink("up", "../../../../.."), symlink("tmp", "/tmp"), dir("tmpdir"), symlink("in", "tmpdir"),
				file("in/f", "through a link"), file("abs/g", "the root is the layer"), file("up/h", "so is what is above it"),
			},
			map[string]string{
				"abs": "-> /", "up": "-> ../../../../..", "tmp": "-> /tmp", "tmpdir": "drwxr-xr-x", "in": "-> tmpdir",
				"tmpdir/f": "-rw-r--r-- through a link", "g": "-rw-r--r-- the root is the layer", "h": "-rw-r--r-- so is what is above it",
			},
		},
		"absolute names are of the layer": {
			[]tar.Header{file("/etc/passwd", "x"), file("//a//b", "y"), dir("./"), file("./c/./d", "z")},
			map[string]string{
				"etc": "drwxr-xr-x", "etc/passwd": "-rw-r--r-- x", "a": "drwxr-xr-x", "a/b": "-rw-r--r-- y", "c": "drwxr-xr-x", "c/d": "-rw-r--r-- z",
			},
		},
		"hard links": {
			[]tar.Header{file("a", "one"), hardlink("b", "a"), symlink("s", "/etc/shadow"), hardlink("t", "s"), hardlink("a", "a")},
			map[string]string{"a": "-rw-r--r-- one", "b": "-rw-r--r-- one", "s": "-> /etc/shadow", "t": "-> /etc/shadow"},
		},
		"the last of a name counts": {
			[]tar.Header{file("a", "one"), file("a", "two"), symlink("l", "/etc/passwd"), file("l", "not through it"), file("x", ""), dir("x"), dir("x")},
			map[string]string{"a": "-rw-r--r-- two", "l": "-rw-r--r-- not through it", "x": "drwxr-xr-x"},
		},
		"whiteouts": {
			[]tar.Header{
				file("d/.wh.gone", ""), file("e/.wh..wh..opq", ""), file("e/new", ""), file("d/.wh.gone", ""),
				file("f", ""), file(".wh.f", ""), // this layer's own stays
				file(".wh.g", ""), file("g", "again"), // in either order
				file(".wh.h", ""), dir("h"), file("h/i", ""), // a directory in its place shows nothing of the old one
				dir("j"), file(".wh.j", ""),
				file(".wh..wh.plnk/1.2", ""), file(".wh..wh.aufs", ""),
			},
			map[string]string{
				"d": "drwxr-xr-x", "d/gone": "whiteout 0", "e": "drwxr-xr-x opaque", "e/new": "-rw-r--r-- ", "f": "-rw-r--r-- ",
				"g": "-rw-r--r-- again", "h": "drwxr-xr-x opaque", "h/i": "-rw-r--r-- ", "j": "drwxr-xr-x opaque",
			},
		},
		"attributes of the tar are nobody's": {
			[]tar.Header{{Name: "d", Typeflag: tar.TypeDir, Mode: 0o755, PAXRecords: map[string]string{
				"SCHILY.xattr.user.overlay.opaque": "y", "SCHILY.xattr.security.capability": "x",
			}}},
			map[string]string{"d": "drwxr-xr-x"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := unpacked(t, store(t), c.tar...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(- want, + got):\n%s", diff)
			}
		})
	}
}

// A refused layer leaves nothing behind, in the store or beside it.
func TestExtractRefuses(t *testing.T) {
	t.Parallel()
	small := image.Limits{Bytes: 1 << 20, Entries: 10}
	many := make([]tar.Header, 11)
	for i := range many {
		many[i] = file(strings.Repeat("f", i+1), "")
	}
	for name, c := range map[string]struct {
		tar    []tar.Header
		limits image.Limits
		kind   fault.Kind
		text   string
	}{
		"upwards":                     {[]tar.Header{file("../../evil", "")}, image.Limits{}, fault.Denied, "its name leads upwards"},
		"upwards in the middle":       {[]tar.Header{file("a/../../evil", "")}, image.Limits{}, fault.Denied, "its name leads upwards"},
		"a hard link upwards":         {[]tar.Header{hardlink("a", "../../../etc/passwd")}, image.Limits{}, fault.Denied, "its name leads upwards"},
		"a hard link to the host":     {[]tar.Header{hardlink("a", "/etc/passwd")}, image.Limits{}, fault.Unsupported, "which this layer does not have"},
		"a hard link through a link":  {[]tar.Header{symlink("l", "/etc"), hardlink("a", "l/passwd")}, image.Limits{}, fault.Unsupported, "which this layer does not have"},
		"a hard link to a directory":  {[]tar.Header{dir("d"), hardlink("a", "d")}, image.Limits{}, fault.Invalid, "which is not a file"},
		"a hard link to a whiteout":   {[]tar.Header{file(".wh.d", ""), hardlink("a", "d")}, image.Limits{}, fault.Invalid, "which is not a file"},
		"a whiteout of what is above": {[]tar.Header{file("d/.wh...", "")}, image.Limits{}, fault.Denied, `it hides ".."`},
		"a whiteout of itself":        {[]tar.Header{file("d/.wh..", "")}, image.Limits{}, fault.Denied, `it hides "."`},
		"a whiteout of nothing":       {[]tar.Header{file("d/.wh.", "")}, image.Limits{}, fault.Denied, `it hides ""`},
		"below a whiteout":            {[]tar.Header{file(".wh.d/x", "")}, image.Limits{}, fault.Invalid, "it lies below a whiteout"},
		"a file in a file":            {[]tar.Header{file("a", ""), file("a/b", "")}, image.Limits{}, fault.Unavailable, "not a directory"},
		"a file over a directory":     {[]tar.Header{dir("a"), file("a", "")}, image.Limits{}, fault.Invalid, "it is a directory of the same layer"},
		"links in a circle":           {[]tar.Header{symlink("a", "b"), symlink("b", "a"), file("a/x", "")}, image.Limits{}, fault.Unavailable, "too many levels"},
		"a file too large":            {[]tar.Header{file("a", strings.Repeat("x", 2<<20))}, small, fault.Denied, "larger than a layer may be"},
		"files too large together": {
			[]tar.Header{file("a", strings.Repeat("x", 700<<10)), file("b", strings.Repeat("x", 700<<10))}, small, fault.Denied, "larger than an image's layer may be",
		},
		"too many files": {many, small, fault.Denied, "more than 10 files"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := store(t)
			s.Limits = c.limits
			_, err := unpacked(t, s, c.tar...)
			if fault.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %s %v, want %s with %q", fault.KindOf(err), err, c.kind, c.text)
			}
			left, _ := filepath.Glob(filepath.Join(filepath.Dir(s.Dir), "*"))
			inside, _ := filepath.Glob(filepath.Join(s.Dir, "layers", "*[^k]"))
			if len(left) != 1 || len(inside) != 0 {
				t.Errorf("left behind: %q %q", left, inside)
			}
		})
	}
}

// A few bytes that decompress to a disk full of zeros end at the limit.
func TestDecompressionBomb(t *testing.T) {
	t.Parallel()
	s := store(t)
	s.Limits.Bytes = 8 << 20
	_, err := unpacked(t, s, tar.Header{Name: "zeros", Uname: strings.Repeat("\x00", 9<<20)})
	if fault.KindOf(err) != fault.Denied {
		t.Errorf("got %v", err)
	}
}

// A changed blob of a layout has a different digest.
func TestChangedContentIsRefused(t *testing.T) {
	t.Parallel()
	layer := archive(t, file("f", "good"))
	forged := func(t *testing.T, change func(dir string, m v1.Manifest)) error {
		img := built(t, v1.Config{}, layer)
		dir := writeLayout(t, img, "")
		m, err := img.Manifest()
		if err != nil {
			t.Fatal(err)
		}
		change(dir, *m)
		_, err = store(t).Image(t.Context(), must(t, "oci:"+dir), false)
		return err
	}
	put := func(t *testing.T, dir string, digest v1.Hash, content []byte) {
		if err := os.WriteFile(filepath.Join(dir, "blobs/sha256", digest.Hex), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	zip := func(content []byte) []byte {
		var out strings.Builder
		w := gzip.NewWriter(&out)
		_, _ = w.Write(content)
		_ = w.Close()
		return []byte(out.String())
	}
	if err := forged(t, func(string, v1.Manifest) {}); err != nil {
		t.Fatalf("an untouched image is refused: %v", err)
	}
	for name, change := range map[string]func(string, v1.Manifest){
		"layer":  func(d string, m v1.Manifest) { put(t, d, m.Layers[0].Digest, zip(archive(t, file("f", "evil")))) },
		"config": func(d string, m v1.Manifest) { put(t, d, m.Config.Digest, []byte(`{"config":{"Env":["A=evil"]}}`)) },
		"behind the tar": func(d string, m v1.Manifest) {
			put(t, d, m.Layers[0].Digest, zip(append(slices.Clone(layer), "evil"...)))
		},
		"truncated": func(d string, m v1.Manifest) { put(t, d, m.Layers[0].Digest, zip(layer)[:20]) },
	} {
		if err := forged(t, change); err == nil {
			t.Errorf("a changed %s was not noticed", name)
		}
	}
}

// A registry is foreign too: it may send something else, or redirect elsewhere.
func TestHostileRegistry(t *testing.T) {
	t.Parallel()
	img := built(t, v1.Config{}, archive(t, file("f", "")))
	good := push(t, img)
	raw, err := img.RawManifest()
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(raw, &m); err != nil {
		t.Fatal(err)
	}
	m["layers"].([]any)[0].(map[string]any)["urls"] = []string{"http://169.254.169.254/latest"}
	foreign, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		answer func(w http.ResponseWriter, r *http.Request)
		ref    string
		kind   fault.Kind
		text   string
	}{
		"other content than was asked for": {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") }, "@" + digest.String(), fault.Denied, "the registry sent content with digest"},
		"layers elsewhere":                 {func(w http.ResponseWriter, r *http.Request) { serve(w, r, good, foreign) }, ":tag", fault.Unsupported, "outside of its registry"},
		"a manifest without end":           {func(w http.ResponseWriter, _ *http.Request) { endless(w) }, ":tag", fault.Unsupported, "it is larger than"},
		"no such image":                    {http.NotFound, ":tag", fault.NotFound, "no such image"},
		"a login for somebody else": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="http://203.0.113.1/token",service="x"`)
			w.WriteHeader(http.StatusUnauthorized)
		}, ":tag", fault.Denied, "wants the login sent to"},
		"an index of indexes": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"manifests":[{"digest":"sha256:`+strings.Repeat("0", 64)+`"}]}`)
		}, ":tag", fault.Denied, "its content has digest"},
		"an image and an index at once": {func(w http.ResponseWriter, r *http.Request) {
			serve(w, r, good, slices.Concat(raw[:len(raw)-1], []byte(`,"manifests":[{"digest":"`+digest.String()+`"}]}`)))
		}, ":tag", fault.Invalid, "at once"},
		"an image that calls itself an index": {func(w http.ResponseWriter, r *http.Request) {
			serve(w, r, good, bytes.Replace(raw, []byte("manifest.v2+json"), []byte("manifest.list.v2+json"), 1))
		}, ":tag", fault.Invalid, "at once"},
		"an index that calls itself an image": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"mediaType":"application/vnd.oci.image.manifest.v1+json","manifests":[{"digest":"`+digest.String()+`"}]}`)
		}, ":tag", fault.Invalid, "at once"},
		"indexes without end": {nested(8), ":tag", fault.Invalid, "nested too deep"},
		"no JSON":             {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }, ":tag", fault.Invalid, "cannot read the manifest"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(c.answer))
			t.Cleanup(server.Close)
			_, err := store(t).Image(t.Context(), must(t, strings.TrimPrefix(server.URL, "http://")+"/some/image"+c.ref), false)
			if fault.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %s %v, want %s with %q", fault.KindOf(err), err, c.kind, c.text)
			}
		})
	}
}

// nested serves an index in an index, that many times.
func nested(depth int) http.HandlerFunc {
	documents := map[string][]byte{}
	at := []byte(`{"manifests":[]}`)
	for range depth {
		digest := fmt.Sprintf("sha256:%x", sha256.Sum256(at))
		documents[digest] = at
		at = []byte(`{"manifests":[{"digest":"` + digest + `"}]}`)
	}
	return func(w http.ResponseWriter, r *http.Request) {
		document, ok := documents[path.Base(r.URL.Path)]
		if !ok {
			document = at
		}
		_, _ = w.Write(document)
	}
}

// serve answers with the test's own manifest and passes everything else on.
func serve(w http.ResponseWriter, r *http.Request, registry string, manifest []byte) {
	if strings.Contains(r.URL.Path, "/manifests/") {
		_, _ = w.Write(manifest)
		return
	}
	http.Redirect(w, r, "http://"+registry+r.URL.Path, http.StatusTemporaryRedirect)
}

func endless(w io.Writer) {
	for block := make([]byte, 1<<16); ; {
		if _, err := w.Write(block); err != nil {
			return
		}
	}
}
