package arch_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// bounded: do not change it to fix a build.
//
// The files below read on the host what an agent made and what strangers send:
// each parses, expands or walks it, with the calls after its name. All packages
// are looked through but those of [apart]. A line that begins with "bound" says what
// the files below it cost at most, whatever they are given: in memory, time and
// descriptors, and in what they write. A bound that is only limits.disk says so.
const bounded = `
# Walks through what a sandbox can write, by descriptors.
bound memory: 1,024 names of a directory | time: the entries that limits.disk allows | descriptors: 256, deeper is left out | output: none
hostile/names.go: ReadDir Readdirnames
keeper/disk_linux.go: Readdirnames
workspace/local/local.go: hostile.Look hostile.Root

bound memory: 1,024 names of a directory | time: the entries there are, 10,000 passes over a directory that is filled meanwhile | descriptors: a fixed depth, what lies deeper is moved up first | output: none
engine/catchup.go: hostile.Remove
engine/claim.go: hostile.Remove
engine/environmentlist.go: hostile.Remove
engine/goldenfar.go: hostile.Remove
engine/innerbase.go: hostile.Remove
engine/pruneuserland.go: hostile.Remove
engine/remove.go: hostile.Remove
engine/rewind.go: hostile.Remove
engine/trash.go: hostile.Remove
frozen/box_linux.go: hostile.Remove
frozen/sweep.go: hostile.Remove
outpost/station/layers.go: hostile.Remove
outpost/station/places.go: hostile.Remove
outpost/station/snapshots.go: hostile.Remove
userland/foundation_linux.go: hostile.Remove

bound memory: 10,000 names of a control group, 1 MiB of process ids | time: 20,000 groups, the deepest first | descriptors: two | output: none
driver/namespace/cgroup/below_linux.go: hostile.Entries io.ReadAll
driver/namespace/cgroup/empty_linux.go: filepath.WalkDir

bound memory: 4,096 names of a directory, or those that limits.disk allows | time: the entries that limits.disk allows | descriptors: two for each level | output: none
live/protect.go: hostile.Entries hostile.Root
service/journal/journal.go: hostile.Entries
workspace/local/refs_linux.go: hostile.Entries

bound memory: the names of one directory for each level, which limits.disk bounds in number | time: the entries that limits.disk allows | descriptors: two for each level, deeper than the deepest is an error | output: a copy within the same limits, a file of holes stays one
frozen/archive_linux.go: hostile.Names hostile.Directory
frozen/copy_linux.go: hostile.Names hostile.Directory hostile.Remove
frozen/draft_linux.go: hostile.Names hostile.Directory hostile.Remove
frozen/join_linux.go: hostile.Names hostile.Directory
frozen/parts_linux.go: hostile.Names hostile.Directory hostile.Remove
frozen/search_linux.go: hostile.Names hostile.Directory
frozen/stamps_linux.go: io.ReadFull
frozen/unchanged_linux.go: hostile.Directory
layer/layers_linux.go: hostile.Names hostile.Directory
layer/written_linux.go: hostile.Names

# Files of a sandbox or a live environment, read whole.
bound memory: 64 MiB of a file, 512 MiB where it is converted | time: its size as judged before | descriptors: one | output: a blob, 4 GiB
branch/content.go: io.ReadAll
landing/conversions.go: ReadSlice ReadString

bound memory: 8 KiB of a worktree's .git | time: its size | descriptors: one | output: one of two notes
branch/nested.go: io.ReadAll

bound memory: 256 MiB of a live environment's index, 64 KiB of its HEAD and references | time: its size | descriptors: one | output: none
live/live.go: io.ReadAll
live/checkout.go: hostile.Root
live/configured.go: hostile.Root

bound memory: 1 MiB of a list of ignored names, 16 KiB of a file, 4 KiB of a HEAD, 64 MiB of a file with a secret's value | time: its size | descriptors: one | output: a listing of bounded chunks
frozen/rewrite_linux.go: io.ReadAll
layer/readlimited.go: io.ReadAll
layer/deltalayer.go: io.ReadFull
layer/rebranch_linux.go: io.ReadAll
workspace/feed/format.go: io.ReadFull
workspace/feed/write.go: io.ReadAll

bound memory: 8 MiB of a line of an agent's client, 1 MiB of a text in pieces | time: its size | descriptors: none | output: the line
profile/piece.go: json.NewDecoder

bound memory: 64 KiB of a line | time: 12 MiB of a service's log | descriptors: one | output: the lines asked for
service/journal/read.go: ReadSlice

# Objects of git that an agent made, and what git says of them.
bound memory: 64 KiB and the sizes declared, never what they expand to | time: a pack of 2 GiB | descriptors: one | output: none
branch/packcheck.go: io.ReadFull zlib.NewReader
git/deadpacks.go: io.ReadFull

bound memory: one name for each object of a commit, whose files limits.disk allows | time: the same | descriptors: one | output: none
branch/bulk.go: filepath.WalkDir

bound memory: git's, 2 GiB, and 256 MiB of trees or 1 MiB of a message | time: git's, ten minutes of a processor | descriptors: three pipes | output: git's, 1 GiB; 1,000,000 paths
branch/expansion.go: ReadString io.ReadFull
git/fastimport.go: ReadString
git/objects.go: ReadString io.ReadFull
git/quickopen.go: io.ReadAll zlib.NewReader
git/trailer.go: ReadString io.ReadFull
landing/riskcontent.go: ReadString io.ReadFull
layer/history.go: bufio.NewScanner

# The human's own repository: rules and hooks that a merge changes.
bound memory: 16 MiB of a file of rules, 64 KiB of a hook and 200 of them | time: their size | descriptors: one | output: none
git/settings.go: io.ReadAll
landing/hooks.go: io.ReadAll

bound memory: 128 KiB of a configuration, 1 MiB of a file that init looks at, 32 MiB of a client's settings | time: their size, 500 files of the human's own | descriptors: one | output: none
agents/belongings.go: filepath.WalkDir io.ReadAll
agents/exclusively.go: io.ReadAll json.NewDecoder
agents/place.go: io.ReadAll
config/load.go: io.ReadAll
template/languages.go: bufio.NewScanner
template/template.go: io.ReadAll

bound memory: the names of one directory for each level | time: the paths of a commit, 1,000,000, or what the human asked to copy | descriptors: one | output: none
engine/bring.go: fs.WalkDir
landing/layout.go: filepath.WalkDir
landing/oldworktree.go: fs.WalkDir
landing/obstacles.go: fs.ReadDir
layer/checkout.go: filepath.WalkDir

# Archives that a sandbox sends, or that a human is given.
bound memory: a header and a buffer | time: the stream's, which ends with the command | descriptors: two | output: the disk's room less a reserve, counted before each entry
engine/copy.go: tar.NewReader
engine/diskroom.go: io.ReadFull
engine/files.go: filepath.WalkDir tar.NewReader

bound memory: 4 MiB of the record, a header and a buffer | time: 4,000,000 entries | descriptors: two for each level | output: 64 GiB
engine/goldenport.go: gzip.NewReader io.ReadAll tar.NewReader
frozen/search.go: io.ReadFull tar.NewReader
outpost/station/goldens.go: hostile.Remove tar.NewReader

# Images, from registries and files.
bound memory: 8 MiB of a document, the window of the compression | time: the limits of a layer, 128 layers, indexes three deep | descriptors: two for each level | output: the limits of a layer, in bytes and entries
image/archive.go: tar.NewReader
image/compression.go: gzip.NewReader zstd.NewReader
zstd/linked/linked.go: zstd.NewReader
image/extract_linux.go: tar.NewReader
image/files.go: fs.ReadDir io.ReadAll
image/manifest.go: io.ReadAll

bound memory: 4 MiB of an image's users, 64 KiB of a line | time: the files of the image | descriptors: one for each level | output: entries that have another owner, and those that everybody can read
driver/namespace/stage/base_linux.go: io.ReadAll
userland/above_linux.go: filepath.WalkDir
userland/copy_linux.go: bufio.NewScanner filepath.WalkDir

# What flows through the proxy.
bound memory: 1 MiB of a body whose length changes, 256 KiB held of a frame, one window of a decoder | time: the connection's | descriptors: the connection's | output: what came in
egress/inject/request.go: io.ReadAll
egress/inject/response.go: gzip.NewReader

bound memory: 64 MiB of a request, a window of 8 MiB, fixed depth and lengths of an answer's fields | time: the connection's | descriptors: the connection's | output: none
egress/metering/request.go: gzip.NewReader zstd.NewReader
egress/metering/response.go: gzip.NewReader

bound memory: 64 KiB of a request, 1 MiB of an answer | time: the renewal's | descriptors: one connection | output: none
egress/renew/hook.go: io.ReadAll
egress/renew/renew.go: io.ReadAll

bound memory: 256 KiB of a message to the ssh-agent, 32 KiB of its other lengths | time: the connection's | descriptors: 16 connections | output: an answer of the same bound
sshagent/proxy.go: io.ReadFull
egress/upstream.go: io.ReadFull

# The wire from a guest.
bound memory: 256 KiB of a frame, 8 KiB of an error, 8 MiB of a listing | time: deadlines of the stream | descriptors: a window of streams | output: none
wire/frame.go: io.ReadFull

# Links to machines that sandboxes run in, and what programs there say.
bound memory: 32 KiB of a frame, 4 MiB of a message, a window for each stream | time: the link's | descriptors: the link's | output: none
outpost/link.go: io.ReadFull
outpost/message.go: io.ReadFull
outpost/stream.go: io.ReadFull

bound memory: 4 KiB of a path, a buffer of a file, the names of one directory for each level | time: a layer's, whose sum is checked | descriptors: two for each level | output: the layer, within the machine's disk
outpost/tree.go: ReadDir
outpost/treeread.go: io.ReadFull
driver/remote/near.go: filepath.WalkDir
bound memory: 64 KiB of a shell's words, 128 bytes of a port's, 256 of a borrower's, 4 KiB of an engine's | time: that of a start | descriptors: the link's | output: none
driver/container/moby/dial.go: io.ReadAll io.ReadFull
driver/remote/relay.go: ReadSlice
driver/remote/sshstream.go: ReadSlice
outpost/port.go: ReadSlice

# Messages of agents outside, and what providers of accounts answer.
bound memory: 32 MiB of a message or a login | time: its size | descriptors: one | output: an answer
frontend/mcp/stdio.go: ReadSlice
login/document.go: json.NewDecoder
login/file.go: io.ReadAll

# What only litterbox and the human write: settings, records, transcripts
# of the runner.
bound memory: 1 MiB of a draft, 4 MiB of settings, 64 KiB of a shell's rc, one line of a transcript | time: their size | descriptors: one | output: none
engine/agentdrive.go: json.NewDecoder
engine/agentfollow.go: ReadBytes
engine/agentsettings.go: json.NewDecoder
engine/initialize.go: io.ReadAll
engine/shellrc.go: io.ReadAll
outpost/station/measure.go: bufio.NewScanner

bound memory: one report of a keeper, a lease with a failure or notes | time: that of a start | descriptors: one pipe | output: none
keeper/starter.go: json.NewDecoder

bound memory: what our own first process says before a program of the sandbox runs | time: that of a start | descriptors: one pipe | output: none
driver/local/start.go: io.ReadAll io.ReadFull
driver/namespace/carriage_linux.go: io.ReadAll
driver/namespace/tier_linux.go: io.ReadAll
`

// apart are the packages whose readers are not in the table, below the reason. All
// others meet what an agent made or strangers send, and a new package is one of
// them until it is listed here.
const apart = `
# They read what litterbox or the human wrote, and the files of the kernel and of
# this machine. Those that grow have bounds of their own: logs are cut and turned.
app app/child app/inside app/outpost audit caller door driver/container driver/landlock driver/libvirt driver/libvirt/rpc driver/lima
driver/lima/limactl editor egress/preset frontend/cli ledger lock machine machineimage ownership packagecache payload process secret secret/source secret/vault store

# They run inside, with the memory, time and descriptors of the sandbox or machine.
fsmonitor guest guest/egress guest/overlay guest/proc outpost/boot

# They work on values that a caller has read within a bound, or on none.
driver driver/landlock/confine driver/netns driver/ruleset driver/seccomp engine/use fault git/attribute git/ignore git/wildmatch
keeper/inprocess keeper/launch patch redact rest sandbox seal secret/replace threat watch workspace

# They are tests, and attacks with their own bounds.
arch branch/branchtest driver/drivertest driver/fake git/gittest redteam redteam/probe
`

// consuming lists the ways to read without a bound of one's own: whole, up to
// a mark, out of something compressed or packed, or by walking.
var consuming = map[string][]string{
	"io": {"ReadAll", "ReadFull"}, "bufio": {"NewScanner"}, "json": {"NewDecoder"}, "http": {"ReadRequest", "ReadResponse"},
	"tar": {"NewReader"}, "zip": {"NewReader"}, "gzip": {"NewReader"}, "zlib": {"NewReader"}, "zstd": {"NewReader"}, "flate": {"NewReader"}, "bzip2": {"NewReader"},
	"hostile": {"Directory", "Root", "Names", "Entries", "Walk", "Look", "Remove"}, "filepath": {"Walk", "WalkDir"}, "fs": {"ReadDir", "WalkDir"}, "xml": {"NewDecoder"},
}

// consumingMethods are the same as methods, of whatever. What package os reads by
// path is judged by TestOpeners. A directory that a sandbox can write is listed by
// [hostile.Names] or [hostile.Entries]: it may be removed meanwhile.
var consumingMethods = []string{"ReadString", "ReadBytes", "ReadSlice", "ReadLine", "Readdirnames", "Readdir", "ReadDir"}

func TestBounds(t *testing.T) {
	want, err := parseBounded(bounded)
	if err != "" {
		t.Fatal(err)
	}
	got := map[string][]string{}
	internal := filepath.Join(root(t), "internal")
	packages := packagesBelow(t, internal)
	unread := parseApart(apart)
	for _, pkg := range unread {
		if packages[pkg] == nil {
			t.Errorf("%s is listed apart, and there is no such package", pkg)
		}
	}
	for pkg, found := range packages {
		if slices.Contains(unread, pkg) {
			continue
		}
		for _, file := range found {
			if strings.HasSuffix(file, "_test.go") || strings.HasSuffix(file, "_other.go") {
				continue
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			if calls := consumes(parsed); len(calls) > 0 {
				got[pkg+"/"+filepath.Base(file)] = calls
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what parses, expands or walks (- reviewed, + found). Find out what bounds it, and add a line below a bound that says so:\n%s", diff)
	}
}

// packagesBelow maps each package with source below dir to its files.
func packagesBelow(t *testing.T, dir string) map[string][]string {
	found := map[string][]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.Name() == "testdata" {
			return fs.SkipDir
		}
		if strings.HasSuffix(path, ".go") {
			pkg, err := filepath.Rel(dir, filepath.Dir(path))
			if err != nil {
				return err
			}
			pkg = filepath.ToSlash(pkg)
			found[pkg] = append(found[pkg], path)
		}
		return nil
	})
	if err != nil || len(found) == 0 {
		t.Fatalf("no source below %s: %v", dir, err)
	}
	return found
}

// parseApart returns the packages that are listed.
func parseApart(text string) (packages []string) {
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") {
			packages = append(packages, strings.Fields(line)...)
		}
	}
	return packages
}

// parseBounded returns the files of the table with their calls; its problem is
// empty if each is below a bound that names all four.
func parseBounded(text string) (files map[string][]string, problem string) {
	files = map[string][]string{}
	bound := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(line, "bound "); ok {
			bound = rest
			parts := strings.Split(bound, " | ")
			for i, name := range []string{"memory: ", "time: ", "descriptors: ", "output: "} {
				if i >= len(parts) || len(parts) != 4 || len(strings.TrimPrefix(parts[i], name)) < 3 || !strings.HasPrefix(parts[i], name) {
					return nil, "a bound lacks its " + name + line
				}
			}
			continue
		}
		if line == "" || strings.HasPrefix(line, "#") {
			bound = ""
			continue
		}
		file, calls, ok := strings.Cut(line, ": ")
		if !ok || bound == "" || files[file] != nil {
			return nil, "without a bound, or there twice: " + line
		}
		files[file] = strings.Fields(calls)
		slices.Sort(files[file])
	}
	return files, ""
}

func consumes(file *ast.File) []string {
	var found []string
	ast.Inspect(file, func(node ast.Node) bool {
		selector, ok := node.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		name := selector.Sel.Name
		if pkg, ok := selector.X.(*ast.Ident); ok && slices.Contains(consuming[pkg.Name], name) {
			name = pkg.Name + "." + name
		} else if ok && pkg.Name == "os" || !slices.Contains(consumingMethods, name) {
			return true
		}
		if !slices.Contains(found, name) {
			found = append(found, name)
		}
		return true
	})
	slices.Sort(found)
	return found
}

// The control: a reader without a line is found, and a line without a bound.
func TestBoundsSees(t *testing.T) {
	const source = `package p
func f() { io.ReadAll(r); x.ReadString('\n'); tar.NewReader(r); io.Copy(a, b); dir.Readdirnames(-1); hostile.Remove(p); g(gzip.NewReader); os.ReadDir(p); d.ReadDir(-1); fs.WalkDir(a, b, c); r.ReadSlice('\n') }`
	parsed, err := parser.ParseFile(token.NewFileSet(), "p.go", source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"ReadDir", "ReadSlice", "ReadString", "Readdirnames", "fs.WalkDir", "gzip.NewReader", "hostile.Remove", "io.ReadAll", "tar.NewReader"}, consumes(parsed)); diff != "" {
		t.Errorf("(- want, + got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a", "b/c", "d"}, parseApart("# why\na b/c\n\n# why not\nd\n")); diff != "" {
		t.Errorf("(- want, + got):\n%s", diff)
	}
	for _, text := range []string{
		"a.go: io.ReadAll", "bound memory: none | time: none | descriptors: none\na.go: io.ReadAll",
		"bound memory: none | time: none | descriptors: none | output: none\na.go: x\na.go: x",
		"bound memory: none | time: none | descriptors: none | output: none\n\na.go: x",
	} {
		if _, problem := parseBounded(text); problem == "" {
			t.Errorf("nothing is wrong with %q", text)
		}
	}
}
