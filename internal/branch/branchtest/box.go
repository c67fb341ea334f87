package branchtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/litterbox-sandbox/litterbox/internal/branch"
	"github.com/litterbox-sandbox/litterbox/internal/caller"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/git/gittest"
	"github.com/litterbox-sandbox/litterbox/internal/layer"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/workspace"
	"github.com/litterbox-sandbox/litterbox/internal/workspace/feed"
	"github.com/litterbox-sandbox/litterbox/internal/workspace/local"
)

// childVariable makes the test binary serve as the inside of a sandbox.
const childVariable = "LITTERBOX_BRANCH_TEST_CHILD"

func Main(m *testing.M) {
	if place := os.Getenv(MonitorVariable); place != "" {
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

// MonitorVariable makes it serve as the monitor that git asks which files changed,
// for an upper directory and, after a line break, the work tree above it.
const MonitorVariable = "LITTERBOX_BRANCH_TEST_MONITOR"

// Inside says what the child does: mount an overlay, act, print git's tree.
type Inside struct {
	Layers              []string
	Upper, Work, Target string
	Script              string // for sh -e, in the work tree
	Seed                uint64 // random operations when not 0
}

func child(encoded string) error {
	var s Inside
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
func (s Inside) outside(t testing.TB, dir string) string {
	t.Helper()
	cmd := exec.Command("sh", "-e", "-c", s.Script)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("outside: %v", err)
	}
	return strings.TrimSpace(string(out))
}

// Run starts the child in a user namespace of its own, as a sandbox runs.
func (s Inside) Run(t testing.TB) string {
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

// Box is one sandbox as the engine holds it.
type Box struct {
	T          testing.TB
	Repository *git.Repository
	Cache      layer.Cache
	Layers     []string
	own        []string // those with the repository's own files
	Tree       layer.Tree
	Git        string // the layer with .git
	copied     string // remembers what was copied to upper, in a box without layers
	Upper      string
	Frozen     []string // what was written before, below Upper; topmost first
	Work       string
	Target     string
	State      string
	Base       string
	Name       string
	Alone      bool // only the requested imports: each leaves a pack
	Moving     bool // it is written while it is read: no two readings are the same
	imports    int
	listed     []byte // the listing that a machine and its host keep
}

func New(t testing.TB, dir, name string) *Box {
	t.Helper()
	return NewOn(t, layer.Cache{Dir: filepath.Join(t.TempDir(), "cache")}, dir, name)
}

// NewOn makes a box from the checkout in dir on a cache that may not be empty.
func NewOn(t testing.TB, cache layer.Cache, dir, name string) *Box {
	t.Helper()
	r := gittest.Open(t, dir)
	state := t.TempDir()
	b := &Box{
		T: t, Repository: r, Cache: cache, Base: r.Head, Name: name,
		Upper: filepath.Join(state, "upper"), Work: filepath.Join(state, "work"),
		Target: filepath.Join(state, "merged"), State: filepath.Join(state, "delta"),
	}
	for _, d := range []string{b.Upper, b.Work, b.Target} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	// overlayfs leaves a directory there that an ordinary user cannot enter.
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(b.Work, "work"), 0o700) })
	ctx := gittest.Context(t)
	made, err := b.Cache.Layers(ctx, r, r.Head, r.HeadTree, git.Owner{}, nil)
	b.Layers, b.Tree = made.Dirs, made.Files
	if err != nil {
		t.Fatal(err)
	}
	b.own = (&sandbox.Sandbox{Layers: made.Dirs, Modules: made.Modules}).OwnLayers()
	b.Git = b.Layers[len(b.Layers)-1]
	if err := layer.PrepareUpper(b.Upper, name, r.Head, git.Owner{}); err != nil {
		t.Fatal(err)
	}
	if err := r.CreateBranch(ctx, name, r.Head, "id-"+strings.ReplaceAll(name, "/", "-")); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *Box) Inside(script string) string {
	b.T.Helper()
	return Inside{Layers: b.Layers, Upper: b.Upper, Work: b.Work, Target: b.Target, Script: script}.Run(b.T)
}

// Freeze turns what was written into a layer, with an empty upper directory above it.
func (b *Box) Freeze() {
	b.T.Helper()
	frozen := fmt.Sprintf("%s-%d", b.Upper, len(b.Frozen))
	if err := os.Rename(b.Upper, frozen); err != nil {
		b.T.Fatal(err)
	}
	if err := os.Mkdir(b.Upper, 0o755); err != nil {
		b.T.Fatal(err)
	}
	b.Frozen = append([]string{frozen}, b.Frozen...)
	b.Layers = append([]string{frozen}, b.Layers...)
}

var SomeTime = time.Unix(1_700_000_000, 0).UTC()

// Workspace returns the workspace that the engine would ask.
func (b *Box) Workspace() local.Files {
	return local.Files{Dir: filepath.Dir(b.State), Frozen: b.Frozen, Layers: b.own, Copy: b.copied != ""}
}

func (b *Box) Request() branch.ImportRequest {
	return branch.ImportRequest{
		Branch: b.Name, Workspace: b.Workspace(), State: b.State, Base: b.Base,
		Author:  git.Signature{Name: "Ada", Email: "ada@example.com", When: SomeTime},
		Subject: "step", Body: "command", Trailers: []branch.Trailer{{Key: "Sandbox", Value: b.Name}},
	}
}

func (b *Box) ImportNow() branch.ImportResult {
	b.T.Helper()
	return b.ImportAs(b.Request())
}

// ImportAs imports the files as they are on this disk. A listing of them, as a
// machine would stream it, must give the same result: that is checked for the first
// of a box's imports and each sixth after it, with LITTERBOX_TEST_LONG for all.
func (b *Box) ImportAs(q branch.ImportRequest) branch.ImportResult {
	b.T.Helper()
	ctx := caller.For(context.Background(), caller.ThisProcess())
	var far branch.ImportResult
	const every = 6
	sampled := b.imports%every == 0 || os.Getenv("LITTERBOX_TEST_LONG") != ""
	b.imports++
	compares := q.Agent == nil && !b.Alone && sampled // an agent's commits can be taken only once
	if compares {
		preview := q
		preview.Workspace, preview.Preview = b.Far(), true
		var err error
		if far, err = branch.Import(ctx, b.Repository, preview); err != nil {
			b.T.Fatalf("from a listing: %v", err)
		}
	}
	result, err := branch.Import(ctx, b.Repository, q)
	if err != nil {
		b.T.Fatal(err)
	}
	if compares && !b.Moving {
		b.same(result, far)
	}
	return result
}

// Far returns the workspace as its machine would list it, compared with the
// host's record of the base: a copy's memory, or git's tree.
func (b *Box) Far() workspace.Workspace {
	compared := workspace.Base{Tree: b.Base}
	if b.copied != "" {
		compared = b.Workspace().Base()
	}
	return feed.Workspace{Source: &kept{b, feed.From(b.Workspace())}, Compared: compared}
}

// same fails unless the listing gave the same result as the files.
func (b *Box) same(near, far branch.ImportResult) {
	b.T.Helper()
	elsewhere := func(note string) bool { return strings.Contains(note, "is checked out in") } // said when the branch moves
	of := func(r branch.ImportResult) branch.ImportResult {                                    // without what differs in a preview
		return branch.ImportResult{
			Tree: r.Tree, Changed: r.Changed, Notes: slices.DeleteFunc(append([]string{}, r.Notes...), elsewhere),
			Left: r.Left, Paths: append([]string{}, r.Paths...),
		}
	}
	if diff := cmp.Diff(of(near), of(far)); diff != "" {
		b.T.Fatalf("a listing comes to something else (-files +listing):\n%s", diff)
	}
}

// Consolidation returns a request for a box that no one else uses.
func (b *Box) Consolidation() git.Consolidation {
	return git.Consolidation{State: b.State, Lock: func(context.Context, string) (func(), error) { return func() {}, nil }}
}

// GitTree prints the tree that git itself makes of the work tree, in a
// repository whose index a sandbox uses.
const GitTree = "git add -A && git write-tree && git ls-tree -r $(git write-tree)"

// ManyFiles returns a repository that is large enough for deltas.
func ManyFiles(t testing.TB) string {
	t.Helper()
	dir := gittest.Repository(t)
	for i := range 400 {
		gittest.Write(t, dir, fmt.Sprintf("d%d/e%d/f%d", i%8, i%3, i), fmt.Sprintln(i))
	}
	gittest.Write(t, dir, "d1/.gitattributes", "*.crlf text eol=crlf\n")
	gittest.Write(t, dir, "d1/e1/x.crlf", "one\ntwo\n")
	gittest.Shell(t, dir, "git add -A; git commit -qm many")
	return dir
}

// Shows fails unless the merged layers of b are what git checks out, which is what its
// repository has, with an index that git trusts at once.
func (b *Box) Shows() {
	b.T.Helper()
	gittest.Shell(b.T, b.Repository.Top, "git clean -ffdxq; git ls-files -z '*.crlf' | xargs -0 rm -f; git checkout -q -- .")
	// Times and inodes of every file agree with the index: diff-files does not
	// look at content.
	out := b.Inside(`find . -path ./.git -prune -o -name '*' ! -type d -printf '%P %y %m\n' | sort
		echo "-- dirs"; find . -path ./.git -prune -o -type d -printf '%P\n' | sort
		echo "-- content"; find . -path ./.git -prune -o -type f -print0 | sort -z | xargs -0 sha1sum
		find . -path ./.git -prune -o -type l -printf '%p %l\n' | sort
		echo "-- stale"; git diff-files; git diff-index --cached HEAD; git status --short`)
	listing := Inside{Script: `find . -name .git -prune -o ! -type d -printf '%P %y %m\n' | sort
		echo "-- dirs"; find . -name .git -prune -o -type d -printf '%P\n' | sort
		echo "-- content"; find . -name .git -prune -o -type f -print0 | sort -z | xargs -0 sha1sum
		find . -name .git -prune -o -type l -printf '%p %l\n' | sort
		echo "-- stale"`}
	want := listing.outside(b.T, b.Repository.Top)
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(out, "\n")); diff != "" {
		b.T.Fatalf("the layers %q show something else (-git +layers):\n%s", b.Layers, diff)
	}
}

func (b *Box) Show(args ...string) string {
	b.T.Helper()
	return gittest.Git(b.T, b.Repository.Top, args...)
}

// NewCopy makes a box that has no layers but a copy of all files.
func NewCopy(t testing.TB, cache layer.Cache, dir, name string) *Box {
	t.Helper()
	b := NewOn(t, cache, dir, name)
	b.copied = filepath.Join(filepath.Dir(b.State), "copied")
	if err := b.Copy().Make(gittest.Context(t), git.Owner{}, nil); err != nil {
		t.Fatal(err)
	}
	b.Layers, b.own = nil, nil
	return b
}

func (b *Box) Copy() layer.Copy {
	return layer.Copy{Layers: append(b.Tree.Dirs(), b.Git), Upper: b.Upper, Base: b.copied, Format: b.Repository.ObjectFormat}
}
