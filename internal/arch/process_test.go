package arch_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// readers: do not change it to fix a build.
//
// Frontends say whose environment, home and name count, in the context of a
// request (package caller). A package below them that read its own process's
// would lend a server's to its clients. Each file below was looked at: what it
// reads belongs to the process, of the kind that heads the lines.
const readers = `
# The one place that asks, for frontends and for programs of their own.
caller/caller.go: os.Environ os.UserHomeDir user.Current

# A process of its own, with an environment that was chosen for it: a keeper,
# what runs inside, the program that attacks.
keeper/network.go: os.Getenv
driver/landlock/acquire_linux.go: os.Getenv os.UserHomeDir
fsmonitor/own_linux.go: os.Getenv
installer/main_linux.go: os.Environ os.Getenv
redteam/probe/connect_linux.go: os.Getenv

# The session's message bus, which the library of the keyring looks for there.
secret/vault/keyring.go: os.Getenv

# Where this very program lies, said by the program that started it.
payload/outpost.go: os.Getenv
payload/payload.go: os.Getenv

# About this machine and this process, for a human who asks: which hint helps
# against a full disk, and what happens at a logout.
fault/disk.go: os.Getenv os.UserHomeDir
driver/namespace/tier_linux.go: user.Current

# How the machine reaches registries.
image/registry.go: http.ProxyFromEnvironment

# For tests.
driver/drivertest/drivertest.go: os.Getenv
git/gittest/gittest.go: os.Environ
branch/branchtest/box.go: os.Environ os.Getenv
`

// reading lists the ways to read the process's environment, home and user.
var reading = map[string][]string{
	"os": {"Getenv", "LookupEnv", "Environ", "ExpandEnv", "UserHomeDir", "UserConfigDir", "UserCacheDir"}, "user": {"Current"},
	"http": {"ProxyFromEnvironment"}, "syscall": {"Getenv", "Environ"}, "unix": {"Getenv", "Environ"},
}

func TestProcessIsReadWhereItMay(t *testing.T) {
	want, err := parseBlock(readers)
	if err != nil {
		t.Fatal(err)
	}
	dir := root(t)
	got := map[string][]string{}
	for _, file := range files(t, dir) {
		name, inside := strings.CutPrefix(file, "internal/")
		if !inside || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") ||
			strings.HasPrefix(name, "frontend/") || strings.HasPrefix(name, "app/") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, file), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if found := readings(parsed); len(found) > 0 {
			got[name] = found
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what reads the process (- reviewed, + found). Take it from caller.Of(ctx); for anything else look at it and add a line:\n%s", diff)
	}
}

// readings lists which of those a file calls or mentions.
func readings(file *ast.File) []string {
	var found []string
	ast.Inspect(file, func(node ast.Node) bool {
		selector, ok := node.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		pkg, ok := selector.X.(*ast.Ident)
		if name := selector.Sel.Name; ok && slices.Contains(reading[pkg.Name], name) && !slices.Contains(found, pkg.Name+"."+name) {
			found = append(found, pkg.Name+"."+name)
		}
		return true
	})
	slices.Sort(found)
	return found
}

// The control: each way is found, called or handed on.
func TestProcessReadingsAreSeen(t *testing.T) {
	const source = `package p
func f() { os.Getenv("X"); g(os.Environ); user.Current(); os.Getpid(); user.LookupId("1"); http.ProxyFromEnvironment(nil) }`
	parsed, err := parser.ParseFile(token.NewFileSet(), "p.go", source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"http.ProxyFromEnvironment", "os.Environ", "os.Getenv", "user.Current"}
	if diff := cmp.Diff(want, readings(parsed)); diff != "" {
		t.Errorf("(- want, + got):\n%s", diff)
	}
}
