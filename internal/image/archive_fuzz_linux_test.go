package image

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// savedImage is an archive as `docker save` writes it, of one image.
func savedImage(f *testing.F, manifest, config string, layers ...string) []byte {
	f.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	put := func(header tar.Header, content string) {
		header.Mode, header.Size = 0o644, int64(len(content))
		if err := w.WriteHeader(&header); err != nil {
			f.Fatal(err)
		}
		if _, err := io.WriteString(w, content); err != nil {
			f.Fatal(err)
		}
	}
	for n, content := range layers {
		put(tar.Header{Name: fmt.Sprintf("layer%d.tar", n)}, content)
	}
	put(tar.Header{Name: "config.json"}, config)
	put(tar.Header{Name: "loop", Typeflag: tar.TypeSymlink, Linkname: "loop"}, "")
	put(tar.Header{Name: "up", Typeflag: tar.TypeSymlink, Linkname: "../../../etc/passwd"}, "")
	put(tar.Header{Name: "manifest.json"}, manifest)
	if err := w.Close(); err != nil {
		f.Fatal(err)
	}
	return b.Bytes()
}

// FuzzArchive reads any content of a saved image. A described image has layers
// that are in the archive itself, of the stated size.
func FuzzArchive(f *testing.F) {
	sum := sha256.Sum256([]byte("content"))
	config := fmt.Sprintf(`{"os":"linux","architecture":"amd64","rootfs":{"type":"layers","diff_ids":["sha256:%s"]}}`, hex.EncodeToString(sum[:]))
	manifest := func(config, layer string) string {
		return fmt.Sprintf(`[{"Config":%q,"RepoTags":["a:1"],"Layers":[%q]}]`, config, layer)
	}
	for _, one := range [][2]string{
		{manifest("config.json", "layer0.tar"), config}, {manifest("config.json", "up"), config}, {manifest("loop", "loop"), config},
		{manifest("../config.json", "./layer0.tar"), config}, {manifest("config.json", "layer0.tar"), "{}"}, {"[]", config}, {"{", config},
		{manifest("config.json", "layer0.tar"), strings.Replace(config, "sha256:", "sha256:../", 1)}, {manifest("manifest.json", ""), ""},
	} {
		f.Add(savedImage(f, one[0], one[1], "content"))
	}
	f.Add([]byte("\x1f\x8b\x08"))
	f.Add([]byte("not a tar"))
	file := filepath.Join(f.TempDir(), "image.tar")
	f.Fuzz(func(t *testing.T, content []byte) {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		a := archive{file: file}
		got, err := a.describe(t.Context())
		if err != nil {
			return
		}
		for _, l := range got.layers {
			if checkDigest(l.diffID) != nil || l.size < 0 || l.size > maxSparse {
				t.Errorf("accepted a layer %+v", l)
			}
			r, err := l.open(t.Context())
			if err != nil {
				t.Errorf("what was described cannot be opened: %v", err)
				continue
			}
			_, _ = io.Copy(io.Discard, io.LimitReader(r, 1<<20)) // it may be cut
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

// maxSparse is more than any file of an archive has.
const maxSparse = 1 << 62

// FuzzChallenge reads a registry's answer to a client without a login.
func FuzzChallenge(f *testing.F) {
	for _, seed := range []string{
		"", "Basic", `Bearer realm="https://auth.example/token",service="registry.example",scope="a,b"`, `Bearer realm=x,,=y,service`, `Bearer realm="x`, "Bearer \x00=\x01",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		scheme, parameters := parseChallenge(header)
		if strings.ContainsAny(scheme, " ") || len(parameters) > len(header) {
			t.Errorf("%q: scheme %q, %q", header, scheme, parameters)
		}
		for key, value := range parameters {
			if key != strings.ToLower(key) || !strings.Contains(header, value) {
				t.Errorf("%q: %q is %q", header, key, value)
			}
		}
		// A well-formed challenge is read as intended.
		if strings.ContainsAny(header, "\"\\,= \t\r\n\v\f\u0085\u00a0") || header == "" {
			return
		}
		if _, again := parseChallenge(`Bearer realm="` + header + `",service=x`); again["realm"] != strings.TrimSpace(header) || again["service"] != "x" {
			t.Errorf("%q became %q", header, again)
		}
	})
}
