package arch_test

import (
	"errors"
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// guestRooms: do not change it to fix a build.
//
// Only these packages of ours run inside a place, whatever imports which: code
// that a hostile program could turn against the guest is not there. Of git's
// there are only its patterns, which the tools for agents need to show the
// files that git shows; of editors, the names of their servers.
const guestRooms = `
app/inside cmd/litterbox-guest fsmonitor
driver driver/landlock/confine driver/namespace/stage driver/netns driver/ruleset driver/seccomp
guest guest/egress guest/overlay guest/proc installer service service/journal wire
editor fault frozen hostile process rest sandbox seal git/ignore git/wildmatch
`

// outpostRooms: do not change it to fix a build.
//
// The program in a machine beside its places has the guest's packages, and these:
// it reads the changes of places, which include git's own formats, and starts
// their stages. Nothing of the engine's, of the network's or of secrets.
const outpostRooms = `
app/outpost cmd/litterbox-outpost outpost outpost/boot outpost/station
driver/local driver/namespace driver/namespace/cgroup
workspace workspace/feed workspace/local caller git layer lock redact
`

// notInside are packages of the standard library that must not come along either.
var notInside = []string{"net/http", "crypto/tls", "os/exec", "net/smtp", "net/rpc", "database/sql", "plugin"}

// modules: do not change it to fix a build.
//
// Which packages of other modules each room imports. A new one runs with the
// rights of the process that it is linked into: look at it first. The interface
// of the kernel, golang.org/x/sys, may be used everywhere.
const modules = `
patch: github.com/pelletier/go-toml/v2 github.com/pelletier/go-toml/v2/unstable github.com/tailscale/hujson go.yaml.in/yaml/v3
branch/branchtest: github.com/google/go-cmp/cmp
cmd/litterbox-release: github.com/spf13/cobra/doc
config: github.com/pelletier/go-toml/v2 github.com/pelletier/go-toml/v2/unstable
door: golang.org/x/crypto/ssh
driver/container/moby: github.com/containerd/errdefs github.com/moby/moby/api/types/container github.com/moby/moby/api/types/mount github.com/moby/moby/client
driver/drivertest: github.com/google/go-cmp/cmp golang.org/x/sync/errgroup
driver/fake: golang.org/x/crypto/ssh
driver/libvirt/rpc: github.com/digitalocean/go-libvirt
driver/netns: github.com/google/nftables github.com/google/nftables/binaryutil github.com/google/nftables/expr github.com/vishvananda/netlink
egress: golang.org/x/net/dns/dnsmessage golang.org/x/net/http/httpproxy golang.org/x/net/idna
egress/intercept: golang.org/x/net/http/httpguts
egress/preset: github.com/pelletier/go-toml/v2 golang.org/x/net/publicsuffix
engine: github.com/pelletier/go-toml/v2 golang.org/x/sync/errgroup
frontend/cli: github.com/spf13/cobra github.com/spf13/pflag golang.org/x/term
frontend/mcp: github.com/google/jsonschema-go/jsonschema github.com/modelcontextprotocol/go-sdk/jsonrpc github.com/modelcontextprotocol/go-sdk/mcp
frontend/ssh: golang.org/x/crypto/ssh
git: golang.org/x/sync/errgroup
git/attribute: golang.org/x/text/encoding golang.org/x/text/encoding/charmap golang.org/x/text/encoding/japanese golang.org/x/text/encoding/korean golang.org/x/text/encoding/simplifiedchinese
guest: github.com/pkg/sftp
image: golang.org/x/sync/errgroup
landing: github.com/pelletier/go-toml/v2 golang.org/x/term
layer: golang.org/x/sync/errgroup
secret/vault: filippo.io/age github.com/zalando/go-keyring
sshagent: golang.org/x/crypto/ssh golang.org/x/crypto/ssh/agent
zstd/linked: github.com/klauspost/compress/zstd
template: github.com/pelletier/go-toml/v2 github.com/tailscale/hujson
wire: golang.org/x/crypto/ssh
`

func TestGuestHoldsNothingOfTheHost(t *testing.T) {
	graph := readGraph(t)
	ours, others := graph.closure("cmd/litterbox-guest")
	want := strings.Fields(guestRooms)
	slices.Sort(want)
	if diff := cmp.Diff(want, ours); diff != "" {
		t.Errorf("rooms of the guest's program (- reviewed, + imported):\n%s", diff)
	}
	for _, name := range standard(t, others) {
		if slices.Contains(notInside, name) {
			t.Errorf("the guest's program has %s", name)
		}
	}
	// The outpost's has these and its own; it starts no shell, but git's code, of
	// which it needs the formats, knows how to start git.
	ours, others = graph.closure("cmd/litterbox-outpost")
	want = slices.DeleteFunc(append(want, strings.Fields(outpostRooms)...), func(name string) bool { return name == "cmd/litterbox-guest" })
	slices.Sort(want)
	if diff := cmp.Diff(want, ours); diff != "" {
		t.Errorf("rooms of the outpost's program (- reviewed, + imported):\n%s", diff)
	}
	for _, name := range standard(t, others) {
		if name != "os/exec" && slices.Contains(notInside, name) {
			t.Errorf("the outpost's program has %s", name)
		}
	}
	// The control: the keeper's program has what the guest's has not.
	ours, others = graph.closure("cmd/litterbox-keeper")
	if !slices.Contains(ours, "git") || !slices.Contains(ours, "egress/intercept") || !slices.Contains(standard(t, others), "net/http") {
		t.Errorf("the keeper's program has neither git nor HTTP, so this test sees nothing: %q", ours)
	}
}

func TestModulesOfEachRoom(t *testing.T) {
	want, err := parseBlock(modules)
	if err != nil {
		t.Fatal(err)
	}
	graph := readGraph(t)
	got := map[string][]string{}
	for pkg, imports := range graph {
		for _, name := range imports {
			if _, ours := graph[name]; !ours && strings.Contains(strings.Split(name, "/")[0], ".") && !strings.HasPrefix(pkg, "test/") && !strings.HasPrefix(name, "golang.org/x/sys/") {
				got[pkg] = append(got[pkg], name)
			}
		}
	}
	for _, list := range want {
		slices.Sort(list)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("packages of other modules by room (- reviewed, + imported):\n%s", diff)
	}
}

// graph is what each of our packages imports on Linux, tests aside: short names
// of ours, paths of others.
type graph map[string][]string

func readGraph(t *testing.T) graph {
	t.Helper()
	dir := root(t)
	found := graph{}
	for _, file := range files(t, dir) {
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") || strings.Contains(file, "testdata/") || strings.HasPrefix(file, "tools/") {
			continue
		}
		pkg := short(filepath.ToSlash(filepath.Dir(file)))
		linux := build.Context{GOOS: "linux", GOARCH: runtime.GOARCH, Compiler: "gc", ReleaseTags: build.Default.ReleaseTags}
		if ok, err := linux.MatchFile(filepath.Join(dir, filepath.Dir(file)), filepath.Base(file)); err != nil || !ok {
			continue
		}
		found[pkg] = append(found[pkg], imports(t, filepath.Join(dir, file))...)
	}
	for pkg, list := range found {
		slices.Sort(list)
		found[pkg] = slices.Compact(list)
	}
	return found
}

func imports(t *testing.T, file string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, spec := range parsed.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		if inside, ours := strings.CutPrefix(name, module+"/"); ours {
			name = short(inside)
		}
		all = append(all, name)
	}
	return all
}

// closure returns everything that a package imports, over any number of others:
// our packages, itself included, and those of others that these import.
func (g graph) closure(pkg string) (ours, others []string) {
	seen, foreign := map[string]bool{}, map[string]bool{}
	var walk func(string)
	walk = func(pkg string) {
		if _, known := g[pkg]; !known {
			foreign[pkg] = true
			return
		}
		if seen[pkg] {
			return
		}
		seen[pkg] = true
		for _, next := range g[pkg] {
			walk(next)
		}
	}
	walk(pkg)
	return slices.Sorted(maps.Keys(seen)), slices.Sorted(maps.Keys(foreign))
}

// standard returns what packages of the standard library import from it, over
// any number of others. Other modules are listed by room instead.
func standard(t *testing.T, from []string) []string {
	t.Helper()
	seen := map[string]bool{}
	linux := build.Context{GOOS: "linux", GOARCH: runtime.GOARCH, Compiler: "gc", ReleaseTags: build.Default.ReleaseTags}
	// A test that was built with -trimpath does not know it.
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	sources := filepath.Join(strings.TrimSpace(string(goroot)), "src")
	var walk func(string)
	walk = func(name string) {
		dir := filepath.Join(sources, filepath.FromSlash(name))
		if strings.Contains(strings.Split(name, "/")[0], ".") {
			dir = filepath.Join(sources, "vendor", filepath.FromSlash(name))
		}
		entries, err := os.ReadDir(dir)
		if errors.Is(err, fs.ErrNotExist) || seen[name] {
			return // of another module
		}
		if err != nil {
			t.Fatal(err)
		}
		seen[name] = true
		for _, entry := range entries {
			if !strings.HasSuffix(entry.Name(), ".go") || strings.HasSuffix(entry.Name(), "_test.go") {
				continue
			}
			if ok, err := linux.MatchFile(dir, entry.Name()); err != nil || !ok {
				continue
			}
			for _, next := range imports(t, filepath.Join(dir, entry.Name())) {
				walk(next)
			}
		}
	}
	for _, name := range from {
		walk(name)
	}
	return slices.Sorted(maps.Keys(seen))
}
