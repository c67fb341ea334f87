// Package program builds the true litterbox for tests that attack or measure
// it from outside, and runs it on a repository of its own, in a home of its
// own, as the user who runs the tests.
//
// It deliberately knows nothing about litterbox's internals: a test asks what
// it wants to know with a command, as a user would.
package program

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/driver/namespace"
)

// Built is where the programs of one test binary are.
type Built struct {
	dir     string
	missing string // why no sandbox can run here; empty if one can
}

// Build builds litterbox and further main packages of this module, named by
// their paths below its root, without cgo: a sandbox need not have this
// machine's libraries. The caller removes them with Remove.
func Build(packages ...string) (*Built, error) {
	dir, err := os.MkdirTemp("", "litterbox-program-")
	if err != nil {
		return nil, err
	}
	b := &Built{dir: dir, missing: missing()}
	// Another uid inside executes these programs.
	if err := os.Chmod(dir, 0o755); err != nil {
		return nil, err
	}
	for _, pkg := range append([]string{"cmd/litterbox"}, packages...) {
		if err := b.build(filepath.Base(pkg), pkg); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// Variant builds litterbox once more, under another name and with a build tag.
func (b *Built) Variant(name, tag string) error {
	return b.build(name, "cmd/litterbox", "-tags", tag)
}

// Add builds a further main package of this module, as Build does.
func (b *Built) Add(pkg string) error { return b.build(filepath.Base(pkg), pkg) }

// build compiles a main package. litterbox itself is copied from the directory
// LITTERBOX_TEST_PROGRAM where test/run has compiled it for all packages.
func (b *Built) build(name, pkg string, flags ...string) error {
	if ready := os.Getenv("LITTERBOX_TEST_PROGRAM"); ready != "" && pkg == "cmd/litterbox" && len(flags) == 0 {
		content, err := os.ReadFile(filepath.Join(ready, name))
		if err != nil {
			return err
		}
		return os.WriteFile(b.Path(name), content, 0o755)
	}
	root, err := module()
	if err != nil {
		return err
	}
	args := append([]string{"build", "-buildvcs=false", "-o", b.Path(name)}, flags...)
	build := exec.Command("go", append(args, "./"+pkg)...)
	build.Dir = root
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot build %s: %w\n%s", pkg, err, output)
	}
	return nil
}

// module returns the root of this module: the go command starts a test in the
// directory of its package.
func module() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, "go.mod")); err == nil {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("no go.mod above %s", dir)
		}
	}
}

// missing says why the namespace driver cannot run here.
func missing() string {
	var reasons []string
	for _, tier := range (namespace.Driver{}).Capabilities().Isolation {
		if tier.Available {
			return ""
		}
		reasons = append(reasons, append(tier.Missing, tier.Mend...)...)
	}
	return "no sandbox can run here: " + strings.Join(reasons, "; ")
}

// Path returns the path of a built program.
func (b *Built) Path(name string) string { return filepath.Join(b.dir, name) }

// Remove deletes the programs.
func (b *Built) Remove() error { return os.RemoveAll(b.dir) }

// Main is the TestMain of a package that needs built programs: it builds them,
// calls set with their place, runs the tests and returns their exit code.
func Main(m *testing.M, set func(*Built), packages ...string) int {
	b, err := Build(packages...)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	set(b)
	code := m.Run()
	if err := b.Remove(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// Require skips a test if no sandbox can run, and says why. Where
// LITTERBOX_TEST_REQUIRE (comma-separated) names the driver, it fails instead:
// a skip would be an empty success.
func (b *Built) Require(t testing.TB) {
	t.Helper()
	if b.missing == "" {
		return
	}
	if slices.Contains(strings.Split(os.Getenv("LITTERBOX_TEST_REQUIRE"), ","), namespace.Name) {
		t.Fatal(b.missing)
	}
	t.Skip(b.missing)
}
