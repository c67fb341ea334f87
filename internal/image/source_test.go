package image_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/image"
)

func digestOf(content string) string {
	sum := sha256.Sum256([]byte(content))
	return "sha256:" + hex.EncodeToString(sum[:])
}

func TestParse(t *testing.T) {
	t.Parallel()
	digest := digestOf("")
	for typed, want := range map[string]image.Source{
		"host":                          {Kind: image.Host},
		"/srv/root":                     {Kind: image.Directory, Path: "/srv/root"},
		"./root":                        {Kind: image.Directory, Path: "./root"},
		"~/root":                        {Kind: image.Directory, Path: "~/root"},
		"oci:image":                     {Kind: image.Layout, Path: "image"},
		"oci:/a:b":                      {Kind: image.Layout, Path: "/a:b"},
		"docker-archive:/a.tar:x:1":     {Kind: image.Archive, Path: "/a.tar:x:1"},
		"debian":                        {Kind: image.Registry, Host: "docker.io", Name: "library/debian", Tag: "latest"},
		"debian:12":                     {Kind: image.Registry, Host: "docker.io", Name: "library/debian", Tag: "12"},
		"me/tool":                       {Kind: image.Registry, Host: "docker.io", Name: "me/tool", Tag: "latest"},
		"docker.io/library/debian:12":   {Kind: image.Registry, Host: "docker.io", Name: "library/debian", Tag: "12"},
		"index.docker.io/debian":        {Kind: image.Registry, Host: "docker.io", Name: "library/debian", Tag: "latest"},
		"ghcr.io/a/b/c@" + digest:       {Kind: image.Registry, Host: "ghcr.io", Name: "a/b/c", Digest: digest},
		"ghcr.io/a/b:v1@" + digest:      {Kind: image.Registry, Host: "ghcr.io", Name: "a/b", Tag: "v1", Digest: digest},
		"localhost/a":                   {Kind: image.Registry, Host: "localhost", Name: "a", Tag: "latest"},
		"localhost:5000/a__b/c-d.e:1_2": {Kind: image.Registry, Host: "localhost:5000", Name: "a__b/c-d.e", Tag: "1_2"},
		"[::1]:5000/a":                  {Kind: image.Registry, Host: "[::1]:5000", Name: "a", Tag: "latest"},
	} {
		got, err := image.Parse(typed)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%q: %v (- want, + got):\n%s", typed, err, diff)
			continue
		}
		if got.Kind != image.Registry {
			continue
		}
		if again, err := image.Parse(got.String()); err != nil || again.String() != got.String() {
			t.Errorf("%q is written as %q, which is %q (%v)", typed, got, again, err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for _, typed := range []string{
		"", "Debian", "debian:", "debian:-1", "debian:a b", "a//b", "/../x\n", "deb\x1bian", "docker://debian", "https://x/y", "oci:", "docker-archive:",
		"docker-daemon:x", "oci-archive:x.tar", "debian@sha256:12", "debian@md5:x", "-x", "ghcr.io/", "ghcr.io/A", "a..b", "a/.b", "a/b_", "ex ample.com/x",
		"example.com:port/x", "example.com:123456/x", "evil.com\x00.docker.io/x", "user@example.com/x", strings.Repeat("a", 300), "debian:" + strings.Repeat("a", 129),
	} {
		got, err := image.Parse(typed)
		kind := fault.KindOf(err)
		if kind != fault.Invalid && kind != fault.Unsupported || fault.HintOf(err) == "" {
			t.Errorf("%q: got %+v, %v (try: %s)", typed, got, err, fault.HintOf(err))
		}
	}
}

// Another implementation reads references the same way, or refuses them too.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"debian:12", "ghcr.io/a/b@" + digestOf(""), "localhost:5000/x", "a.b/c:d", "[::1]:1/x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, typed string) {
		got, err := image.Parse(typed)
		if err != nil || got.Kind != image.Registry {
			return
		}
		theirs, err := name.ParseReference(typed)
		if err != nil || strings.HasPrefix(got.Host, "[") {
			return
		}
		host := strings.Replace(got.Host, "docker.io", "index.docker.io", 1)
		if got.Host != "docker.io" {
			host = got.Host
		}
		if theirs.Context().RegistryStr() != host || theirs.Context().RepositoryStr() != got.Name {
			t.Errorf("%q: we read %s and %s, others %s and %s", typed, host, got.Name, theirs.Context().RegistryStr(), theirs.Context().RepositoryStr())
		}
	})
}

// A relative path is the repository's, and a link there came with a clone.
func TestLocate(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	outside := t.TempDir()
	for _, dir := range []string{"root/bin", "other"} {
		if err := os.MkdirAll(filepath.Join(top, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"good": "root", "evil": outside, "up": ".."} {
		if err := os.Symlink(target, filepath.Join(top, link)); err != nil {
			t.Fatal(err)
		}
	}
	for typed, want := range map[string]fault.Kind{
		"./root": "", "./good": "", "oci:root": "", "oci:root:tag": "", outside: "", "debian": "", "host": "",
		"~/x": fault.Invalid, "./evil": fault.Denied, "./up": fault.Denied, "../x": fault.NotFound, "./none": fault.NotFound, "oci:evil": fault.Denied, "docker-archive:up": fault.Denied,
	} {
		if _, err := must(t, typed).Locate(top, ""); fault.KindOf(err) != want {
			t.Errorf("%q: got %v, want %q", typed, err, want)
		}
	}
}

func TestCheckDirectory(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "good/usr"), 0o755); err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(root, "all/home/me")
	for _, dir := range []string{home, filepath.Join(root, "all/bin"), filepath.Join(root, "empty"), filepath.Join(root, "layout")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "layout/oci-layout"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]fault.Kind{
		filepath.Join(root, "good"): "", "/": fault.Denied, filepath.Join(root, "all"): fault.Denied, home: fault.Denied,
		filepath.Join(root, "empty"): fault.Invalid, filepath.Join(root, "layout"): fault.Invalid, filepath.Join(root, "none"): fault.NotFound,
		filepath.Join(root, "layout/oci-layout"): fault.Invalid,
	} {
		if err := image.CheckDirectory(dir, home); fault.KindOf(err) != want {
			t.Errorf("%s: got %v, want %q", dir, err, want)
		}
	}
}
