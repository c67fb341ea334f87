package clients_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// word is what every package says.
const word = "it works"

// files answers with fixed contents by path.
type files map[string][]byte

func (f files) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	content, ok := f[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	if strings.HasSuffix(r.URL.Path, "/") {
		w.Header().Set("Content-Type", "text/html")
	}
	_, _ = w.Write(content)
}

// npmRegistry is what npm needs of https://docs.npmjs.com/cli/using-npm/registry:
// a document per package, and the tarball that it names.
func npmRegistry(t *testing.T, base string) http.Handler {
	manifest := map[string]any{"name": "lib", "version": "1.0.0", "main": "index.js"}
	content, err := json.Marshal(manifest)
	if err != nil {
		t.Fatal(err)
	}
	var tarball bytes.Buffer
	compressed := gzip.NewWriter(&tarball)
	archive := tar.NewWriter(compressed)
	for name, data := range map[string]string{"package/package.json": string(content), "package/index.js": fmt.Sprintf("module.exports = %q\n", word)} {
		if err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(data))}); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write([]byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := compressed.Close(); err != nil {
		t.Fatal(err)
	}
	manifest["dist"] = map[string]string{"tarball": base + "/lib/-/lib-1.0.0.tgz", "shasum": fmt.Sprintf("%x", sha1.Sum(tarball.Bytes()))}
	document, err := json.Marshal(map[string]any{"name": "lib", "dist-tags": map[string]string{"latest": "1.0.0"}, "versions": map[string]any{"1.0.0": manifest}})
	if err != nil {
		t.Fatal(err)
	}
	return files{"/lib": document, "/lib/-/lib-1.0.0.tgz": tarball.Bytes()}
}

// goRegistry speaks the protocol of https://go.dev/ref/mod#goproxy-protocol.
func goRegistry(t *testing.T, _ string) http.Handler {
	const mod = "module lib.example/lib\n"
	dir := "/lib.example/lib/@v/"
	return files{
		dir + "list": []byte("v1.0.0\n"), dir + "v1.0.0.mod": []byte(mod),
		dir + "v1.0.0.info": []byte(`{"Version": "v1.0.0", "Time": "2024-01-01T00:00:00Z"}`),
		dir + "v1.0.0.zip":  zipped(t, "lib.example/lib@v1.0.0/go.mod", mod, "lib.example/lib@v1.0.0/lib.txt", word+"\n"),
	}
}

// pipRegistry is a simple index (PEP 503) with one wheel (PEP 427).
func pipRegistry(t *testing.T, _ string) http.Handler {
	const info = "lib-1.0.dist-info/"
	contents := []string{
		"lib.py", fmt.Sprintf("word = %q\n", word),
		info + "METADATA", "Metadata-Version: 2.1\nName: lib\nVersion: 1.0\n",
		info + "WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
	}
	record := ""
	for i := 0; i < len(contents); i += 2 {
		sum := sha256.Sum256([]byte(contents[i+1]))
		record += fmt.Sprintf("%s,sha256=%s,%d\n", contents[i], base64.RawURLEncoding.EncodeToString(sum[:]), len(contents[i+1]))
	}
	contents = append(contents, info+"RECORD", record+info+"RECORD,,\n")
	const wheel = "/files/lib-1.0-py3-none-any.whl"
	return files{"/simple/lib/": []byte(`<a href="` + wheel + `">lib-1.0-py3-none-any.whl</a>`), wheel: zipped(t, contents...)}
}

// aptRegistry is a flat repository (sources.list(5)) with one package.
func aptRegistry(t *testing.T, _ string) http.Handler {
	dir := t.TempDir()
	control := "Package: lib\nVersion: 1.0\nArchitecture: all\nMaintainer: a test <test@example.com>\nDescription: says a word\n"
	write(t, filepath.Join(dir, "tree/DEBIAN/control"), control)
	write(t, filepath.Join(dir, "tree/opt/lib"), word+"\n")
	for _, made := range []string{"tree", "tree/DEBIAN", "tree/opt"} {
		if err := os.Chmod(filepath.Join(dir, made), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	deb := filepath.Join(dir, "lib.deb")
	outside.Do(t, nil, "dpkg-deb", "--root-owner-group", "-Zgzip", "--build", filepath.Join(dir, "tree"), deb)
	data := []byte(read(t, deb))
	packages := fmt.Appendf(nil, "%sFilename: ./lib_1.0_all.deb\nSize: %d\nSHA256: %x\n\n", control, len(data), sha256.Sum256(data))
	release := fmt.Appendf(nil, "Date: Mon, 01 Jan 2024 00:00:00 UTC\nSHA256:\n %x %d Packages\n", sha256.Sum256(packages), len(packages))
	return files{"/debian/./Packages": packages, "/debian/Packages": packages, "/debian/./Release": release, "/debian/Release": release,
		"/debian/./lib_1.0_all.deb": data, "/debian/lib_1.0_all.deb": data}
}

// zipped makes an archive of names and contents in turn.
func zipped(t *testing.T, contents ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	archive := zip.NewWriter(&b)
	for i := 0; i < len(contents); i += 2 {
		w, err := archive.Create(contents[i])
		if err == nil {
			_, err = w.Write([]byte(contents[i+1]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
