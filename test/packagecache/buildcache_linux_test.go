package packagecache_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/test/program"
)

// tested is a project with a test, on a host that has run it; online is the
// host's environment.
func tested(t *testing.T) (h, online *program.Host) {
	t.Helper()
	h = newHost(t)
	h.Put(filepath.Join(h.Repo, "main_test.go"), "package main\n\nimport (\n\t\"testing\"\n\n\t\""+module+"\"\n)\n\n"+
		"func TestGreeting(t *testing.T) {\n\tif greeting.Text == \"\" {\n\t\tt.Fatal(\"empty\")\n\t}\n}\n")
	h.Git("add", ".")
	h.Git("commit", "--quiet", "-m", "has a test")
	online = h.With("GOPROXY=off", "GOSUMDB=off", "GOTOOLCHAIN=local", "GOFLAGS=-mod=mod", "CGO_ENABLED=0")
	if got := online.Shell("go test ./... && go build -o " + filepath.Join(h.Dir, "built") + " ."); got.Code != 0 {
		t.Fatalf("the host cannot test: %s", got.Stdout+got.Stderr)
	}
	return h, online
}

const offline = "GOPROXY=off GOSUMDB=off GOTOOLCHAIN=local GOFLAGS=-mod=mod CGO_ENABLED=0 "

// compiled counts the packages that a verbose build compiles.
func compiled(stderr string) int { return strings.Count(stderr, "/compile ") }

// A first build inside compiles nothing that the host has compiled, and the
// first test is the one that the host has run.
func TestGoBuildCache(t *testing.T) {
	h, _ := tested(t)
	cache := filepath.Join(h.Home, ".cache/go-build")

	// The control: unless it is named, nothing from the host's cache is there.
	h.Must("create", "without")
	if got := h.InsideShell("without", offline+"go test -x ./..."); got.Code != 0 || compiled(got.Stderr) < 10 {
		t.Fatalf("without the cache a test exits %d and compiles %d packages: %s", got.Code, compiled(got.Stderr), got.Stderr)
	}

	h.Put(filepath.Join(h.Home, ".config/litterbox/config.toml"), "container.build-caches = [\"go-build\"]\n")
	before := modules(t, cache)
	h.Must("create", "box")
	got := h.InsideShell("box", offline+"go test -x ./...")
	if got.Code != 0 || compiled(got.Stderr) != 0 || !strings.Contains(got.Stdout, "(cached)") {
		t.Errorf("the first test inside exits %d, compiles %d packages and prints %q", got.Code, compiled(got.Stderr), got.Stdout)
	}
	if got := h.InsideShell("box", offline+"go build -x -o /tmp/built ."); got.Code != 0 || compiled(got.Stderr) != 0 {
		t.Errorf("the first build inside exits %d and compiles %d packages", got.Code, compiled(got.Stderr))
	}
	if got := h.Must("status", "box"); !strings.Contains(got, cache+" (build cache: go-build)") {
		t.Errorf("status does not list the cache:\n%s", got)
	}
	// Its later builds are its own, and stay.
	if got := h.InsideShell("box", "echo 'package main\n\nvar Added = 1' > added.go; "+offline+"go test ./..."); got.Code != 0 || strings.Contains(got.Stdout, "(cached)") {
		t.Errorf("a changed package tests as %q (%s)", got.Stdout, got.Stderr)
	}
	h.Must("stop", "box")
	if got := h.InsideShell("box", offline+"go test ./..."); !strings.Contains(got.Stdout, "(cached)") {
		t.Errorf("after a restart the test runs again: %q (%s)", got.Stdout, got.Stderr)
	}
	same(t, before, modules(t, cache))
}

func same(t *testing.T, before, after map[string]string) {
	t.Helper()
	for path, content := range before {
		if after[path] != content {
			t.Errorf("%s of the host changed", path)
		}
	}
	for path := range after {
		if _, ok := before[path]; !ok {
			t.Errorf("%s is new on the host", path)
		}
	}
}

// poison replaces the compiled package of the module with one compiled from
// another text: it follows the go command, under the key of the true source.
const poison = `set -e
cache=$(go env GOCACHE)
source=$(go list -m -f '{{.Dir}}' ` + module + `)
chmod -R u+w $source
sed -i "s/from the host's cache/from a poisoned one!!/" $source/greeting.go
go build -o /tmp/evil . && /tmp/evil 2>&1 | grep poisoned
evil=$(go list -export -f '{{.Export}}' ` + module + `)
sed -i "s/from a poisoned one!!/from the host's cache/" $source/greeting.go
good=$(go list -export -f '{{.Export}}' ` + module + `)
test "$good" != "$evil"
chmod u+w $good
cat $evil > $good
# Binaries and results that were made of the true one go, so that it is linked anew.
grep -rlaF "from the host's cache" $cache | xargs -r rm -f
go build -o /tmp/mine . && /tmp/mine 2>&1 | grep poisoned
`

// A sandbox replaces an entry of the cache, and believes it itself. No one else
// does: not a second running sandbox, not a later one, not the host.
func TestPoisonedBuildCache(t *testing.T) {
	h, online := tested(t)
	h.Put(filepath.Join(h.Home, ".config/litterbox/config.toml"), "container.build-caches = [\"go-build\"]\n")
	cache := filepath.Join(h.Home, ".cache/go-build")
	before := modules(t, cache)
	h.Must("create", "running")
	h.Must("exec", "running", "--", "true")
	h.Must("create", "evil")
	// That it shows inside is the control of the attack.
	if got := h.InsideShell("evil", strings.ReplaceAll(poison, "go ", offline+"go ")); got.Code != 0 {
		t.Fatalf("the cache cannot be poisoned inside: %s%s", got.Stdout, got.Stderr)
	}
	h.Must("create", "later")
	for _, name := range []string{"running", "later"} {
		got := h.InsideShell(name, "rm -f /tmp/x; "+offline+"go build -o /tmp/x . && /tmp/x")
		if got.Code != 0 || !strings.Contains(got.Stderr, "from the host's cache") {
			t.Errorf("%s exits %d with %q", name, got.Code, got.Stdout+got.Stderr)
		}
	}
	same(t, before, modules(t, cache))
	if got := online.Shell("rm -f x; go build -o ../x . && ../x"); got.Code != 0 || !strings.Contains(got.Stderr, "from the host's cache") {
		t.Errorf("the host's build exits %d with %q", got.Code, got.Stdout+got.Stderr)
	}
}

// A golden gives sandboxes a build cache without anything of the host's, and
// the others do not see what one of them does to it.
func TestGoldenBuildCache(t *testing.T) {
	h, _ := tested(t)
	h.Put(filepath.Join(h.Repo, ".litterbox.toml"), fmt.Sprintf("container.setup-command = [\"sh\", \"-c\", %q]\n", offline+"go test ./... && "+offline+"go build -o /tmp/x ."))
	h.Git("add", ".")
	h.Git("commit", "--quiet", "-m", "set up")
	h.Must("build")
	h.Must("create", "evil")
	if got := h.InsideShell("evil", strings.ReplaceAll(poison, "go ", offline+"go ")); got.Code != 0 {
		t.Fatalf("the cache cannot be poisoned inside: %s%s", got.Stdout, got.Stderr)
	}
	h.Must("create", "box")
	got := h.InsideShell("box", offline+"go test -x ./... && "+offline+"go build -o /tmp/x . && /tmp/x")
	if got.Code != 0 || compiled(got.Stderr) != 0 || !strings.Contains(got.Stderr, "from the host's cache") {
		t.Errorf("with a golden the first test exits %d, compiles %d packages and prints %q", got.Code, compiled(got.Stderr), got.Stdout+got.Stderr)
	}
}

// ccache's configuration in its cache, with a password, stays out; its
// compiled objects serve. A stand-in for its files is enough for the former.
func TestBuildCachesBringNoCredentials(t *testing.T) {
	h := built.New(t)
	h.Put(filepath.Join(h.Home, ".cache/ccache/ccache.conf"), "remote_storage = http://me:secret@example.com\n")
	h.Put(filepath.Join(h.Home, ".cache/ccache/0/1/object"), "object\n")
	h.Put(filepath.Join(h.Home, ".cache/go-build/fuzz/example.com/FuzzX/secret"), "secret\n")
	h.Put(filepath.Join(h.Home, ".gradle/gradle.properties"), "secret\n")
	h.Put(filepath.Join(h.Home, ".gradle/caches/build-cache-1/entry"), "entry\n")
	h.Put(filepath.Join(h.Home, ".gradle/caches/modules-2/files-2.1/jar"), "jar\n")
	h.Put(filepath.Join(h.Home, ".cache/sccache/0/entry"), "entry\n")
	const packages = ".gradle/caches/modules-2/files-2.1/jar\n"
	find := func(name string) string {
		return h.InsideShell(name, "cd; for d in .cache/ccache .cache/go-build .cache/sccache .gradle; do find $d -type f -size +0 2>/dev/null | sort; done; grep -rs secret .").Stdout
	}
	h.Must("create", "none")
	if got := find("none"); got != packages {
		t.Errorf("where none is named, there is %q", got)
	}
	h.Put(filepath.Join(h.Home, ".config/litterbox/config.toml"), "container.build-caches = [\"ccache\", \"go-build\", \"gradle-build\"]\n")
	h.Must("create", "all")
	want := ".cache/ccache/0/1/object\n.gradle/caches/build-cache-1/entry\n" + packages
	if got := find("all"); got != want {
		t.Errorf("inside there is %q, and should be %q", got, want)
	}
	// A repository names none by itself, until it is trusted.
	if err := os.Remove(filepath.Join(h.Home, ".config/litterbox/config.toml")); err != nil {
		t.Fatal(err)
	}
	h.Put(filepath.Join(h.Repo, ".litterbox.toml"), "container.build-caches = [\"sccache\"]\n")
	h.Must("create", "repository")
	if got := find("repository"); got != packages {
		t.Errorf("a repository alone gets %q", got)
	}
	h.Must("trust")
	h.Must("create", "trusted")
	if got := find("trusted"); got != ".cache/sccache/0/entry\n"+packages {
		t.Errorf("a trusted repository gets %q", got)
	}
}

// A real ccache finds inside what it compiled outside.
func TestCcache(t *testing.T) {
	program.Need(t, "ccache", "gcc")
	h := built.New(t)
	h.Put(filepath.Join(h.Repo, "main.c"), "int main(void) { return 0; }\n")
	h.Git("add", ".")
	h.Git("commit", "--quiet", "-m", "in C")
	if got := h.Shell("ccache gcc -c main.c -o ../main.o"); got.Code != 0 {
		t.Fatalf("the host cannot compile: %s", got.Stderr)
	}
	h.Put(filepath.Join(h.Home, ".config/litterbox/config.toml"), "container.build-caches = [\"ccache\"]\n")
	h.Must("create", "box")
	got := h.InsideShell("box", "ccache -z >/dev/null; ccache gcc -c main.c -o /tmp/main.o; ccache --print-stats")
	if got.Code != 0 || !strings.Contains(got.Stdout, "direct_cache_hit\t1") && !strings.Contains(got.Stdout, "preprocessed_cache_hit\t1") {
		t.Errorf("ccache inside exits %d with %q", got.Code, got.Stdout+got.Stderr)
	}
}
