package branch_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/branch"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// childVariable makes the test binary serve as the inside of a sandbox.
const childVariable = "LITTERBOX_BRANCH_TEST_CHILD"

func TestMain(m *testing.M) {
	if place := os.Getenv(monitorVariable); place != "" {
		changes, workspace, _ := strings.Cut(place, "\n")
		monitor(changes, workspace)
		os.Exit(0)
	}
	if spec := os.Getenv(childVariable); spec != "" {
		if err := child(spec); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// monitorVariable makes it serve as what git asks which files changed, about
// an upper directory and, after a line break, the work tree above it.
const monitorVariable = "LITTERBOX_BRANCH_TEST_MONITOR"

// inside says what the child does: mount an overlay, act, print git's tree.
type inside struct {
	Layers              []string
	Upper, Work, Target string
	Script              string // for sh -e, in the work tree
	Seed                uint64 // random operations when not 0
}

func child(encoded string) error {
	var s inside
	if err := json.Unmarshal([]byte(encoded), &s); err != nil {
		return err
	}
	options := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s,userxattr,redirect_dir=nofollow,metacopy=off",
		strings.Join(s.Layers, ":"), s.Upper, s.Work)
	if len(s.Layers) == 0 { // a copy
		s.Target = s.Upper
	} else if err := mountOverlay(s.Target, options); err != nil {
		return fmt.Errorf("mount: %w", err)
	}
	if err := os.Chdir(s.Target); err != nil {
		return err
	}
	if s.Seed != 0 {
		operate(s.Seed)
	}
	cmd := exec.Command("sh", "-e", "-c", s.Script)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}

// outside runs the script of s on the host.
func (s inside) outside(t testing.TB, dir string) string {
	t.Helper()
	cmd := exec.Command("sh", "-e", "-c", s.Script)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("outside: %v", err)
	}
	return strings.TrimSpace(string(out))
}

// run starts the child in a user namespace of its own, as a sandbox runs.
func (s inside) run(t testing.TB) string {
	t.Helper()
	encoded, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^$")
	// Otherwise a child built with -race sleeps for a second before it ends.
	cmd.Env = append(os.Environ(), childVariable+"="+string(encoded), "GORACE=atexit_sleep_ms=0")
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	isolate(cmd)
	if err := cmd.Run(); err != nil {
		t.Fatalf("inside: %v\n%s%s", err, stderr.String(), out.String())
	}
	return strings.TrimSpace(out.String())
}

// home gives the test its own HOME and git configuration, and a umask that
// must not matter.
func home(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for _, kv := range os.Environ() {
		if key, _, _ := strings.Cut(kv, "="); strings.HasPrefix(key, "GIT_") {
			t.Setenv(key, "")
			os.Unsetenv(key)
		}
	}
	t.Setenv("HOME", dir)
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(dir, ".config"))
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	write(t, dir, ".gitconfig", "[user]\n\tname = Ada\n\temail = ada@example.com\n[init]\n\tdefaultBranch = main\n")
	return dir
}

func write(t testing.TB, dir, name, content string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// git runs the user's git and returns what it printed.
func git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSuffix(string(out), "\n")
}

func sh(t testing.TB, dir, script string) {
	t.Helper()
	cmd := exec.Command("sh", "-e", "-c", script)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("sh %q: %v\n%s", script, err, out)
	}
}

// repository makes one with a commit of some files.
func repository(t testing.TB) string {
	t.Helper()
	home(t)
	dir := filepath.Join(t.TempDir(), "project")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	git(t, dir, "init", "-q")
	write(t, dir, "README", "hello\n")
	write(t, dir, "src/main.c", "int main;\n")
	write(t, dir, "src/lib/a.c", "a\n")
	write(t, dir, "src/lib/b.c", "b\n")
	write(t, dir, "docs/one.md", "1\n")
	write(t, dir, ".gitignore", "*.o\nbuild/\n")
	write(t, dir, "tools/run.sh", "#!/bin/sh\n")
	sh(t, dir, "chmod +x tools/run.sh; ln -s README link; git add -A; git commit -qm first")
	return dir
}

// box is one sandbox as the engine would hold it.
type box struct {
	t      testing.TB
	r      *branch.Repository
	cache  branch.Cache
	layers []string
	own    []string // those that the repository's own files lie in
	tree   branch.TreeLayer
	git    string // the layer with .git
	copied string // remembers what was copied to upper, in a box without layers
	upper  string
	work   string
	target string
	state  string
	base   string
	name   string
}

func open(t testing.TB, dir string) *branch.Repository {
	t.Helper()
	r, err := branch.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func newBox(t testing.TB, dir, name string) *box {
	t.Helper()
	return newBoxOn(t, branch.Cache{Dir: filepath.Join(t.TempDir(), "cache")}, dir, name)
}

// newBoxOn makes a box of what is checked out in dir on a cache that may hold
// something already.
func newBoxOn(t testing.TB, cache branch.Cache, dir, name string) *box {
	t.Helper()
	r := open(t, dir)
	state := t.TempDir()
	b := &box{
		t: t, r: r, cache: cache, base: r.Head, name: name,
		upper: filepath.Join(state, "upper"), work: filepath.Join(state, "work"),
		target: filepath.Join(state, "merged"), state: filepath.Join(state, "delta"),
	}
	for _, d := range []string{b.upper, b.work, b.target} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	// overlayfs leaves a directory there that an ordinary user cannot enter.
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(b.work, "work"), 0o700) })
	ctx := t.Context()
	made, err := b.cache.Layers(ctx, r, r.Head, r.HeadTree, branch.Owner{}, nil)
	b.layers, b.tree = made.Dirs, made.Files
	if err != nil {
		t.Fatal(err)
	}
	b.own = (&sandbox.Sandbox{Layers: made.Dirs, Modules: made.Modules}).OwnLayers()
	b.git = b.layers[len(b.layers)-1]
	if err := branch.PrepareUpper(b.upper, name, r.Head, branch.Owner{}); err != nil {
		t.Fatal(err)
	}
	if err := r.CreateBranch(ctx, name, r.Head, "id-"+strings.ReplaceAll(name, "/", "-")); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *box) inside(script string) string {
	b.t.Helper()
	return inside{Layers: b.layers, Upper: b.upper, Work: b.work, Target: b.target, Script: script}.run(b.t)
}

var someTime = time.Unix(1_700_000_000, 0).UTC()

func (b *box) request() branch.ImportRequest {
	return branch.ImportRequest{
		Branch: b.name, Source: branch.Source{Upper: b.upper, Layers: b.own, Copied: b.copied}, State: b.state, Base: b.base,
		Author:  branch.Signature{Name: "Ada", Email: "ada@example.com", When: someTime},
		Subject: "step", Body: "command", Trailers: []branch.Trailer{{Key: "Sandbox", Value: b.name}},
	}
}

func (b *box) importNow() branch.ImportResult {
	b.t.Helper()
	return b.importAs(b.request())
}

func (b *box) importAs(q branch.ImportRequest) branch.ImportResult {
	b.t.Helper()
	result, err := b.r.Import(context.Background(), q)
	if err != nil {
		b.t.Fatal(err)
	}
	return result
}

// consolidation is a request without anybody else around.
func (b *box) consolidation() branch.Consolidation {
	return branch.Consolidation{State: b.state, Lock: func(context.Context, string) (func(), error) { return func() {}, nil }}
}
