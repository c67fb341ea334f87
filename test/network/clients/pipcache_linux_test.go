package clients_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/test/network/world"
)

// What pip has downloaded on the host is not downloaded again inside: only the index is
// asked. What a sandbox downloads stays in it.
func TestPipCache(t *testing.T) {
	t.Parallel()
	world.Need(t, "python3", "pip3")
	h := newHost(t)
	registry := outside.Host("pip.cache.example")
	base := "https://" + registry.Name
	index := pipRegistry(t, base)
	var downloads atomic.Int32
	webSite(t, registry, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ".whl") { // as PyPI's files have it
			downloads.Add(1)
			w.Header().Set("Cache-Control", "max-age=365000000, immutable, public")
		}
		index.ServeHTTP(w, r)
	}))
	install := "PIP_CERT=" + h.Repo + "/ca.pem /usr/bin/python3 -m pip install --disable-pip-version-check --retries 0 --index-url " + base + "/simple --target $(mktemp -d)/lib lib==1.0"
	if got := h.Shell(install); got.Code != 0 || downloads.Load() != 1 {
		t.Fatalf("the host's pip exits %d after %d downloads: %s", got.Code, downloads.Load(), got.Stdout+got.Stderr)
	}
	before := contents(t, filepath.Join(h.Home, ".cache/pip"))
	h.Put(h.Home+"/.config/litterbox/config.toml", "[network]\nallow = [\""+registry.Name+"\"]\n")
	h.Must("create", "box")
	if got := h.InsideShell("box", install); got.Code != 0 || !strings.Contains(got.Stdout, "Using cached") || downloads.Load() != 1 {
		t.Errorf("pip inside exits %d after %d downloads: %s", got.Code, downloads.Load(), got.Stdout+got.Stderr)
	}
	h.Put(h.Home+"/.config/litterbox/config.toml", "container.package-caches = []\n[network]\nallow = [\""+registry.Name+"\"]\n")
	h.Must("create", "without")
	if got := h.InsideShell("without", install+" && "+install); got.Code != 0 || downloads.Load() != 2 {
		t.Errorf("without the cache pip exits %d after %d downloads: %s", got.Code, downloads.Load(), got.Stdout+got.Stderr)
	}
	if diff := cmp.Diff(before, contents(t, filepath.Join(h.Home, ".cache/pip"))); diff != "" {
		t.Errorf("the host's cache changed (- before, + after):\n%s", diff)
	}
}

// contents is every file below a directory.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			all[path] = read(t, path)
		}
		return err
	})
	if err != nil || len(all) == 0 {
		t.Fatalf("in %s there are %d files, %v", dir, len(all), err)
	}
	return all
}
