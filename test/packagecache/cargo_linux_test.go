package packagecache_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/test/program"
)

// crate is the package of a library, as registries serve it.
func crate(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	compressed := gzip.NewWriter(&b)
	archive := tar.NewWriter(compressed)
	for name, content := range map[string]string{
		"Cargo.toml": "[package]\nname = \"greeting\"\nversion = \"1.0.0\"\n",
		"src/lib.rs": "pub const TEXT: &str = \"from the host's cache\";\n",
	} {
		if err := archive.WriteHeader(&tar.Header{Name: "greeting-1.0.0/" + name, Mode: 0o644, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := compressed.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// cargo builds inside, without a network, from what it has downloaded on the host: index,
// packages and sources. What is written there stays in the sandbox.
func TestCargo(t *testing.T) {
	program.Need(t, "/usr/bin/cargo", "/usr/bin/rustc", "cc")
	h := built.New(t).With("PATH=/usr/bin:/bin")
	// A registry is a git repository with a line for each version, and the packages.
	registry := filepath.Join(h.Dir, "registry")
	content := crate(t)
	h.Put(filepath.Join(registry, "files/greeting/1.0.0/download"), string(content))
	h.Put(filepath.Join(registry, "index/config.json"), fmt.Sprintf(`{"dl": "file://%s/files"}`, registry))
	h.Put(filepath.Join(registry, "index/gr/ee/greeting"), fmt.Sprintf(`{"name":"greeting","vers":"1.0.0","deps":[],"cksum":"%x","features":{},"yanked":false}`+"\n", sha256.Sum256(content)))
	if got := h.Command(filepath.Join(registry, "index"), "/bin/sh", "-c", "git init -q -b master . && git add . && git commit -qm index"); got.Code != 0 {
		t.Fatal(got.Stderr)
	}
	h.Put(filepath.Join(h.Repo, ".cargo/config.toml"), "[source.crates-io]\nreplace-with = \"mine\"\n[source.mine]\nregistry = \"file://"+registry+"/index\"\n")
	h.Put(filepath.Join(h.Repo, "Cargo.toml"), "[package]\nname = \"project\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[dependencies]\ngreeting = \"1\"\n")
	h.Put(filepath.Join(h.Repo, "src/main.rs"), "fn main() { println!(\"{}\", greeting::TEXT); }\n")
	h.Put(filepath.Join(h.Repo, ".gitignore"), "target/\n")
	if got := h.Shell("cargo fetch"); got.Code != 0 {
		t.Fatalf("the host's cargo exits %d: %s", got.Code, got.Stderr)
	}
	h.Git("add", ".")
	h.Git("commit", "--quiet", "-m", "in Rust")
	if err := os.RemoveAll(registry); err != nil {
		t.Fatal(err)
	}
	cache := filepath.Join(h.Home, ".cargo/registry")
	before := modules(t, cache)

	const run = "cargo run --quiet --offline"
	h.Put(filepath.Join(h.Home, ".config/litterbox/config.toml"), "container.package-caches = []\n")
	h.Must("create", "without")
	if got := h.InsideShell("without", run); got.Code == 0 {
		t.Errorf("without the cache cargo prints %q", got.Stdout)
	}
	h.Put(filepath.Join(h.Home, ".config/litterbox/config.toml"), "")
	h.Must("create", "box")
	if got := h.InsideShell("box", run); got.Code != 0 || got.Stdout != "from the host's cache\n" {
		t.Fatalf("cargo inside exits %d and prints %q: %s", got.Code, got.Stdout, got.Stderr)
	}
	if got := h.Must("status", "box"); !strings.Contains(got, cache+" (package cache: cargo)") {
		t.Errorf("status does not list the cache:\n%s", got)
	}
	// A sandbox changes a source, and builds that; no one else does.
	poison := "set -e; file=$(ls " + cache + "/src/*/greeting-1.0.0/src/lib.rs); sed -i 's/from the host/not from the host/' $file; rm -rf target; " + run
	if got := h.InsideShell("box", poison); got.Code != 0 || got.Stdout != "not from the host's cache\n" {
		t.Errorf("changed inside it exits %d and prints %q: %s", got.Code, got.Stdout, got.Stderr)
	}
	h.Must("create", "other")
	if got := h.InsideShell("other", run); got.Stdout != "from the host's cache\n" {
		t.Errorf("another sandbox prints %q: %s", got.Stdout, got.Stderr)
	}
	same(t, before, modules(t, cache))
}
