// Package packagecache builds in sandboxes of the true program from what the
// host's package managers have downloaded, with a real Go module cache, and
// looks for files that must not come along.
package packagecache_test

import (
	"archive/zip"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/test/program"
)

// built is set by TestMain before any test.
var built *program.Built

func TestMain(m *testing.M) {
	os.Exit(program.Main(m, func(b *program.Built) { built = b }))
}

const module, version = "example.com/greeting", "v1.2.3"

// proxy writes a module into a directory that Go's module proxy protocol can
// be spoken with (go help goproxy).
func proxy(t *testing.T, dir string) {
	t.Helper()
	at := filepath.Join(dir, module, "@v")
	if err := os.MkdirAll(at, 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(name, content string) {
		if err := os.WriteFile(filepath.Join(at, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("list", version+"\n")
	write(version+".info", `{"Version":"`+version+`","Time":"2024-01-01T00:00:00Z"}`)
	write(version+".mod", "module "+module+"\n")
	out, err := os.Create(filepath.Join(at, version+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	w := zip.NewWriter(out)
	for name, content := range map[string]string{
		"go.mod":      "module " + module + "\n",
		"greeting.go": "package greeting\n\nconst Text = \"from the host's cache\"\n",
	} {
		f, err := w.Create(module + "@" + version + "/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// newHost is a host that has downloaded the module that its repository needs.
func newHost(t *testing.T) *program.Host {
	t.Helper()
	h := built.New(t)
	// The tests need a go command, so there is one; inside it is visible where
	// it is part of the system.
	if path, err := exec.LookPath("go"); err != nil || !strings.HasPrefix(path, "/usr/") && !strings.HasPrefix(path, "/opt/") {
		if slices.Contains(strings.Split(os.Getenv("LITTERBOX_TEST_REQUIRE"), ","), "go") {
			t.Fatalf("go is at %q, which a sandbox does not see", path)
		}
		t.Skipf("go is at %q, which a sandbox does not see", path)
	}
	proxy(t, filepath.Join(h.Dir, "proxy"))
	h.Put(filepath.Join(h.Repo, "go.mod"), "module example.com/project\n\ngo 1.20\n\nrequire "+module+" "+version+"\n")
	h.Put(filepath.Join(h.Repo, "main.go"), "package main\n\nimport \""+module+"\"\n\nfunc main() { println(greeting.Text) }\n")
	online := h.With("GOPROXY=file://"+filepath.Join(h.Dir, "proxy"), "GOSUMDB=off", "GOTOOLCHAIN=local", "GOFLAGS=-mod=mod")
	if got := online.Shell("go mod tidy && go build " + module); got.Code != 0 {
		t.Fatalf("the host cannot build: %s", got.Stderr)
	}
	h.Git("add", ".")
	h.Git("commit", "--quiet", "-m", "needs a module")
	h.Put(filepath.Join(h.Home, "go/pkg/mod/cache/vcs/0123/config"), "[remote \"origin\"]\n\turl = https://me:secret@example.com/private\n")
	return h
}

// build compiles the module and, because nothing is linked, nothing else.
const build = "GOPROXY=off GOSUMDB=off GOTOOLCHAIN=local GOFLAGS=-mod=mod go build -v " + module

// modules lists the host's module cache with the content of its files.
func modules(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		found[path] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestGoModuleCache(t *testing.T) {
	h := newHost(t)
	cache := filepath.Join(h.Home, "go/pkg/mod")
	before := modules(t, cache)
	h.Must("create", "box")
	shell := func(name, script string) program.Result {
		t.Helper()
		return h.Inside(name, "/bin/sh", "-c", script)
	}
	if got := shell("box", build); got.Code != 0 || !strings.Contains(got.Stderr, module+"\n") {
		t.Fatalf("a build inside exits %d: %s", got.Code, got.Stderr)
	}
	if got := h.Must("status", "box"); !strings.Contains(got, cache+" (package cache: go)") {
		t.Errorf("status does not list the cache:\n%s", got)
	}

	// A sandbox's files there are its own, and stay.
	source := filepath.Join(cache, module+"@"+version, "greeting.go")
	change := "set -e; cd " + cache + "; touch cache/download/new; mkdir -p example.com/other@v1; " +
		"chmod u+w " + source + " $(dirname " + source + "); echo changed > " + source + "; rm cache/lock 2>/dev/null || true"
	if got := shell("box", change); got.Code != 0 {
		t.Errorf("the cache cannot be written inside: %s", got.Stderr)
	}
	h.Must("stop", "box")
	if got := shell("box", "cat "+source+"; ls -d "+cache+"/cache/download/new"); got.Stdout != "changed\n"+cache+"/cache/download/new\n" {
		t.Errorf("after a restart the sandbox's own cache holds %q (%s)", got.Stdout, got.Stderr)
	}
	h.Must("create", "other")
	if got := shell("other", "cat "+source+"; ls "+cache+"/cache/download/new"); !strings.Contains(got.Stdout, "from the host's cache") || strings.Contains(got.Stdout, "new") {
		t.Errorf("another sandbox sees what the first has written: %q", got.Stdout)
	}
	if diff := cmp.Diff(before, modules(t, cache)); diff != "" {
		t.Errorf("the host's cache changed (- before, + after):\n%s", diff)
	}

	// Clones know where they came from, and with which token.
	for _, script := range []string{
		"grep -rs secret " + cache, "cat " + cache + "/cache/vcs/0123/config", "rm -rf " + cache + "/cache/vcs; mkdir " + cache + "/cache/vcs; cat " + cache + "/cache/vcs/0123/config",
	} {
		if got := shell("other", script); strings.Contains(got.Stdout, "secret") {
			t.Errorf("%q shows %q", script, got.Stdout)
		}
	}
	if got := shell("other", "ls -A "+cache+"/cache/vcs"); got.Stdout != "" || got.Code != 0 {
		t.Errorf("the directory of clones holds %q (%s)", got.Stdout, got.Stderr)
	}
}

// Without an overlay the cache is read-only, says so, and hides the same.
func TestWithoutOverlay(t *testing.T) {
	h := newHost(t)
	cache := filepath.Join(h.Home, "go/pkg/mod")
	h.Must("create", "box")
	h.Must("stop", "box")
	works, err := filepath.Glob(filepath.Join(h.State, "litterbox/sandboxes/box-*/caches/go/work"))
	if err != nil || len(works) != 1 {
		t.Fatalf("the cache's own directory is not found: %q", works)
	}
	if err := os.RemoveAll(works[0]); err != nil {
		t.Fatal(err)
	}
	h.Put(works[0], "not a directory")
	if got := h.Inside("box", "/bin/sh", "-c", build); got.Code != 0 || !strings.Contains(got.Stderr, module+"\n") {
		t.Errorf("a build inside exits %d: %s", got.Code, got.Stderr)
	}
	if got := h.Inside("box", "/bin/sh", "-c", "touch "+cache+"/x; ls -A "+cache+"/cache/vcs"); !strings.Contains(got.Stderr, "Read-only") || got.Stdout != "" {
		t.Errorf("the cache is not read-only, or shows clones: %q %q", got.Stdout, got.Stderr)
	}
	if got := h.Must("status", "box"); !strings.Contains(got, cache+" (package cache: go; read-only: ") {
		t.Errorf("status does not say that the cache is read-only:\n%s", got)
	}
	if err := os.Remove(works[0]); err != nil {
		t.Fatal(err)
	}
	h.Must("stop", "box")
	if got := h.Inside("box", "touch", cache+"/x"); got.Code != 0 {
		t.Errorf("the cache stays read-only: %s", got.Stderr)
	}
}

// Every cache of the table comes along, and files beside it do not.
func TestCredentialsStayOut(t *testing.T) {
	h := built.New(t)
	caches := []string{"go/pkg/mod", ".npm/_cacache", ".cache/pip", ".cargo/registry", ".gradle/caches/modules-2", ".m2/repository"}
	secrets := []string{".npmrc", ".npm/_logs/debug.log", ".cargo/credentials.toml", ".cargo/config.toml", ".m2/settings.xml", ".cache/other", ".cache/go-build/00/x", ".gradle/gradle.properties", "go/src/private", ".pip/pip.conf"}
	for _, cache := range caches {
		h.Put(filepath.Join(h.Home, cache, "package"), "package\n")
	}
	for _, secret := range secrets {
		h.Put(filepath.Join(h.Home, secret), "secret\n")
	}
	h.Must("create", "box")
	var found []string
	for _, line := range strings.Split(h.Inside("box", "/bin/sh", "-c", "cd; grep -rl . "+strings.Join(caches, " ")).Stdout, "\n") {
		if line != "" {
			found = append(found, filepath.Dir(line))
		}
	}
	slices.Sort(found)
	slices.Sort(caches)
	if diff := cmp.Diff(caches, found); diff != "" {
		t.Errorf("caches inside (- want, + got):\n%s", diff)
	}
	if got := h.Inside("box", "/bin/sh", "-c", "cd; grep -rl secret ."); got.Stdout != "" {
		t.Errorf("inside there is %q", got.Stdout)
	}

	// The human can keep them out, and a repository only more of them.
	h.Put(filepath.Join(h.Home, ".config/litterbox/config.toml"), "container.package-caches = [\"npm\", \"pip\"]\n")
	h.Put(filepath.Join(h.Repo, ".litterbox.toml"), "container.package-caches = [\"pip\", \"cargo\"]\n")
	h.Must("create", "fewer")
	if got := h.Inside("fewer", "/bin/sh", "-c", "cd; grep -rl package ."); got.Stdout != "./.cache/pip/package\n" {
		t.Errorf("with fewer there is %q", got.Stdout)
	}
	h.Put(filepath.Join(h.Repo, ".litterbox.toml"), "container.package-caches = []\n")
	h.Must("create", "none")
	if got := h.Inside("none", "/bin/sh", "-c", "cd; grep -rl package ."); got.Stdout != "" {
		t.Errorf("with none there is %q", got.Stdout)
	}
}

// npm looks for a newer npm even offline. What the network refuses then has nothing to
// do with the command, and nothing is said.
func TestOfflineNpmAsksNothing(t *testing.T) {
	program.Need(t, "npm", "node")
	h := built.New(t)
	h.Put(filepath.Join(h.Repo, "package.json"), `{"name": "project", "version": "1.0.0"}`)
	h.Put(filepath.Join(h.Repo, "package-lock.json"), `{"name": "project", "version": "1.0.0", "lockfileVersion": 3, "requires": true, "packages": {"": {"name": "project", "version": "1.0.0"}}}`)
	h.Git("add", ".")
	h.Git("commit", "--quiet", "-m", "with npm")
	h.Must("create", "box")
	got := h.Inside("box", "npm", "ci", "--offline")
	if got.Code != 0 || strings.Contains(got.Stderr, "the network refused") {
		t.Errorf("npm exits %d and says %q", got.Code, got.Stdout+got.Stderr)
	}
}

// A variable that names more than a cache brings nothing.
func TestVariablesNameNoMore(t *testing.T) {
	h := built.New(t)
	h.Put(filepath.Join(h.Home, "secret"), "secret\n")
	elsewhere := filepath.Join(h.Dir, "elsewhere")
	h.Put(filepath.Join(elsewhere, "package"), "package\n")
	for i, variable := range []string{"GOMODCACHE=" + h.Home, "GOMODCACHE=/", "GOMODCACHE=" + h.State, "GOMODCACHE=.", "GOMODCACHE=" + h.Repo} {
		name := "box-" + string(rune('a'+i))
		host := h.With(variable)
		host.Must("create", name)
		if got := host.Inside(name, "/bin/sh", "-c", "ls -A $HOME/go/pkg/mod 2>/dev/null"); got.Stdout != "" {
			t.Errorf("with %s there is %q", variable, got.Stdout)
		}
	}
	host := h.With("GOMODCACHE=" + elsewhere)
	host.Must("create", "moved")
	if got := host.Inside("moved", "/bin/sh", "-c", "cat $HOME/go/pkg/mod/package; test ! -e "+elsewhere); got.Stdout != "package\n" || got.Code != 0 {
		t.Errorf("a cache elsewhere on the host gives %q %q", got.Stdout, got.Stderr)
	}
}
