package image_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/klauspost/compress/zstd"

	"github.com/litterbox-sandbox/litterbox/internal/caller"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// A token is fetched with the user's login, and the login goes nowhere else.
func TestLogin(t *testing.T) {
	img := built(t, v1.Config{}, archive(t, file("f", "")))
	good := push(t, img)
	var elsewhere []string
	cdn := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		elsewhere = append(elsewhere, r.Header.Get("Authorization"))
		http.Redirect(w, r, "http://"+good+r.URL.Path, http.StatusTemporaryRedirect)
	}))
	defer cdn.Close()
	cdnURL := strings.Replace(cdn.URL, "127.0.0.1", "localhost", 1) // another host
	var server *httptest.Server
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		switch {
		case r.URL.Path == "/token" && user == "me" && password == "pass:word" && r.URL.Query().Get("scope") == "repository:some/image:pull":
			_, _ = io.WriteString(w, `{"token":"given"}`)
		case r.Header.Get("Authorization") != "Bearer given":
			w.Header().Set("WWW-Authenticate", `Bearer realm="`+server.URL+`/token",service="here",scope="repository:some/image:pull"`)
			w.WriteHeader(http.StatusUnauthorized)
		case strings.Contains(r.URL.Path, "/blobs/"):
			http.Redirect(w, r, cdnURL+r.URL.Path, http.StatusTemporaryRedirect)
		default:
			http.Redirect(w, r, "http://"+good+r.URL.Path, http.StatusTemporaryRedirect)
		}
	}))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	home := t.TempDir()
	ctx := caller.For(t.Context(), caller.Caller{Home: home, Env: []string{"DOCKER_CONFIG=" + home}})
	s := store(t)
	source := must(t, host+"/some/image:tag")
	if _, err := s.Image(ctx, source, false); fault.KindOf(err) != fault.Denied || !strings.HasPrefix(fault.HintOf(err), "docker login "+host) {
		t.Errorf("without a login: %v (try: %s)", err, fault.HintOf(err))
	}
	config := `{"auths":{"` + host + `":{"auth":"bWU6cGFzczp3b3Jk"}}}`
	if err := os.WriteFile(filepath.Join(home, "config.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Image(ctx, source, false); err != nil {
		t.Error(err)
	}
	if len(elsewhere) == 0 || slices.Max(elsewhere) != "" {
		t.Errorf("where the registry sends for blobs, it saw %q", elsewhere)
	}
}

func TestOtherPlatform(t *testing.T) {
	t.Parallel()
	other := map[string]string{"amd64": "arm64", "arm64": "amd64"}[runtime.GOARCH]
	if other == "" {
		t.Skip("this test knows amd64 and arm64")
	}
	config := `{"os":"linux","architecture":"` + other + `","rootfs":{"diff_ids":[]}}`
	dir := t.TempDir()
	blob := func(content string) string {
		digest := digestOf(content)
		path := filepath.Join(dir, "blobs/sha256", strings.TrimPrefix(digest, "sha256:"))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		return digest
	}
	manifest := blob(`{"config":{"digest":"` + blob(config) + `"},"layers":[]}`)
	write := func(platform string) {
		index := `{"manifests":[{"digest":"` + manifest + `"` + platform + `}]}`
		if err := os.WriteFile(filepath.Join(dir, "index.json"), []byte(index), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for platform, text := range map[string]string{
		"": "it is made for linux/" + other,
		`,"platform":{"os":"linux","architecture":"` + other + `"}`: "only for linux/" + other,
	} {
		write(platform)
		_, err := store(t).Image(t.Context(), must(t, "oci:"+dir), false)
		if fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), text) {
			t.Errorf("got %v, want %q", err, text)
		}
	}
}

func TestZstd(t *testing.T) {
	t.Parallel()
	tarred := archive(t, file("f", strings.Repeat("content", 100)))
	writer, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	compressed := writer.EncodeAll(tarred, nil)
	img := built(t, v1.Config{}, tarred)
	m, err := img.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	dir := writeLayout(t, img, "")
	blob := filepath.Join(dir, "blobs/sha256", m.Layers[0].Digest.Hex)
	if err := os.WriteFile(blob, compressed, 0o644); err != nil {
		t.Fatal(err)
	}
	// The descriptor's size bounds the read.
	if int64(len(compressed)) > m.Layers[0].Size {
		t.Fatalf("the layer has %d bytes with zstd and %d with gzip, so it is not read whole", len(compressed), m.Layers[0].Size)
	}
	if _, err := store(t).Image(t.Context(), must(t, "oci:"+dir), false); err != nil {
		t.Error(err)
	}
}

func TestTimesAreKept(t *testing.T) {
	t.Parallel()
	at := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
	d, f, l := dir("d"), file("d/f", "x"), symlink("d/l", "f")
	d.ModTime, f.ModTime, l.ModTime = at, at, at
	s := store(t)
	got, err := s.Image(t.Context(), must(t, "oci:"+writeLayout(t, built(t, v1.Config{}, archive(t, d, f, l)), "")), false)
	if err != nil {
		t.Fatal(err)
	}
	layers, err := s.Layers(t.Context(), got)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"d", "d/f", "d/l"} {
		info, err := os.Lstat(filepath.Join(layers[0], name))
		if err != nil || !info.ModTime().Equal(at) {
			t.Errorf("%s has the time %v (%v)", name, info.ModTime(), err)
		}
	}
}
