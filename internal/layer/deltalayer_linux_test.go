package layer_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/litterbox-sandbox/litterbox/internal/branch/branchtest"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/git/gittest"
	"github.com/litterbox-sandbox/litterbox/internal/layer"
)

// A tree near a cached one becomes a layer over it that shows the tree
// exactly, whatever changed: kinds, modes, links, whole directories.
func TestDeltaShowsTheTree(t *testing.T) {
	dir := branchtest.ManyFiles(t)
	cache := layer.Cache{Dir: filepath.Join(t.TempDir(), "cache")}
	if b := branchtest.NewOn(t, cache, dir, "first"); b.Tree.Below != "" {
		t.Fatalf("the first tree lies on another: %+v", b.Tree)
	}
	steps := []string{
		"echo changed > d1/e1/f1; echo new > d1/new; echo x > fresh",
		"git rm -q d2/e2/f2 README",
		"chmod +x d3/e0/f3; ln -sf elsewhere link; ln -s ../d1 d4/tod1",
		"git rm -q -r tools; echo now a file > tools",                         // a directory becomes a file
		"rm tools; mkdir -p tools/deep; echo back > tools/deep/run.sh",        // and a directory again
		"rm src/main.c; mkdir src/main.c; echo in > src/main.c/a; rm -r docs", // a file becomes a directory
		"rm -r src/main.c; echo int > src/main.c",                             // and back
		"ln -s d1 docs",                                   // a link where a directory was
		"rm -r src/lib; ln -s ../d2 src/lib",              // a link in place of a directory
		"rm src/lib; mkdir src/lib; echo a > src/lib/a.c", // a directory where a link was
		"git mv d5/e2/f5 d5/moved; rm -r src",
		"echo one >> d1/e1/x.crlf; printf 'a\\nb\\n' > d1/y.crlf", // converted by attributes of the layer below
		"printf 'odd' > 'd1/ lead'; printf 'x' > 'd1/new\nline'; printf x > 'd1/-rf'",
	}
	deltas := 0
	for n, step := range steps {
		gittest.Shell(t, dir, step+"; git add -A; git commit -qm step")
		b := branchtest.NewOn(t, cache, dir, fmt.Sprint("step", n))
		b.Shows()
		if b.Tree.Below != "" {
			deltas++
		}
		// And commits on top are right.
		want, _, _ := strings.Cut(b.Inside("rm -r d0/e1 tools 2>/dev/null; rm -rf fresh docs; echo y > docs; echo z >> d1/e1/f1; rm -rf src; echo s > src; "+branchtest.GitTree), "\n")
		if got := b.ImportNow(); got.Tree != want {
			t.Fatalf("after %q: tree %s, want %s: %s", step, got.Tree, want, gittest.Git(t, dir, "diff-tree", "-r", want, got.Tree))
		}
	}
	if deltas != len(steps) {
		t.Fatalf("%d of %d trees became deltas", deltas, len(steps))
	}
}

// Random changes of the host, then random work inside: the layers show what
// was committed, and Import makes the tree that git makes.
func TestWorkOnDeltas(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			dir := branchtest.ManyFiles(t)
			cache := layer.Cache{Dir: filepath.Join(t.TempDir(), "cache")}
			branchtest.NewOn(t, cache, dir, "first")
			for round := range uint64(3) {
				change(t, dir, seed*10+round)
				b := branchtest.NewOn(t, cache, dir, fmt.Sprint("round", round))
				b.Shows()
				for step := range uint64(2) {
					s := branchtest.Inside{Layers: b.Layers, Upper: b.Upper, Work: b.Work, Target: b.Target, Seed: 7 + seed*100 + round*10 + step, Script: branchtest.GitTree}
					want, listing, _ := strings.Cut(s.Run(t), "\n")
					if got := b.ImportNow(); got.Tree != want {
						t.Fatalf("round %d: the trees differ (-git +import):\n%s\nnotes %q", round,
							cmp.Diff(strings.Split(listing, "\n"), strings.Split(gittest.Git(t, dir, "ls-tree", "-r", got.Tree), "\n")), got.Notes)
					}
				}
			}
		})
	}
}

// change commits something random in the checkout dir.
func change(t testing.TB, dir string, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 2))
	tracked := strings.Split(strings.TrimSuffix(gittest.Git(t, dir, "ls-files", "-z"), "\x00"), "\x00")
	for range 1 + rng.IntN(8) {
		path := filepath.Join(dir, tracked[rng.IntN(len(tracked))])
		if filepath.Base(path) == ".gitattributes" {
			continue
		}
		switch rng.IntN(6) {
		case 0, 1:
			_ = os.WriteFile(path, fmt.Appendln(nil, "changed", seed), 0o644)
		case 2:
			_ = os.Remove(path)
		case 3:
			_ = os.RemoveAll(path)
			_ = os.MkdirAll(filepath.Join(path, "was"), 0o755)
			_ = os.WriteFile(filepath.Join(path, "was", "a file"), []byte("x"), 0o644)
		case 4:
			_ = os.RemoveAll(filepath.Dir(path))
			_ = os.MkdirAll(filepath.Dir(filepath.Dir(path)), 0o755)
			_ = os.Symlink("anywhere", filepath.Dir(path))
		case 5:
			_ = os.WriteFile(filepath.Join(filepath.Dir(path), fmt.Sprint("new", seed)), []byte("n"), 0o755)
		}
	}
	gittest.Shell(t, dir, "git add -A; git commit -q --allow-empty -m change")
}

// A tree that would need an opaque directory, or with changes that affect
// files that did not change, is checked out whole.
func TestSomeTreesAreNoDeltas(t *testing.T) {
	for name, step := range map[string]string{
		"attributes":             "echo '* text eol=crlf' > .gitattributes; git add -A; git ls-files -z | xargs -0 rm; git checkout-index -a",
		"submodule in its place": "git rm -q -r --cached docs; rm -r docs; git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),docs",
		"far":                    "rm -r d1 d2 d3 d4; git add -A",
	} {
		t.Run(name, func(t *testing.T) {
			dir := branchtest.ManyFiles(t)
			cache := layer.Cache{Dir: filepath.Join(t.TempDir(), "cache")}
			branchtest.NewOn(t, cache, dir, "first")
			gittest.Shell(t, dir, step+"; git commit -qm step")
			b := branchtest.NewOn(t, cache, dir, "second")
			if b.Tree.Below != "" {
				t.Fatalf("a delta: %+v", b.Tree)
			}
			b.Shows()
		})
	}
}

// A submodule that comes, moves and goes is an empty directory, delta or not.
func TestDeltaWithSubmodules(t *testing.T) {
	dir := branchtest.ManyFiles(t)
	cache := layer.Cache{Dir: filepath.Join(t.TempDir(), "cache")}
	branchtest.NewOn(t, cache, dir, "first")
	for n, step := range []string{
		"git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),vendor/sub; mkdir -p vendor/sub",
		"git update-index --cacheinfo 160000,$(git rev-parse HEAD),vendor/sub",
		"git rm -q --cached README; rm README; mkdir README; git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),README",
		"git rm -q --cached vendor/sub; rm -r vendor/sub; mkdir vendor/sub; echo f > vendor/sub/f; git add vendor",
	} {
		gittest.Shell(t, dir, step+"; git commit -qm step")
		b := branchtest.NewOn(t, cache, dir, fmt.Sprint("step", n))
		if b.Tree.Below == "" {
			t.Fatalf("%q: no delta", step)
		}
		b.Shows()
		want, _, _ := strings.Cut(b.Inside("echo y > d1/e1/f1; rm -r d2; "+branchtest.GitTree), "\n")
		if got := b.ImportNow(); got.Tree != want {
			t.Fatalf("after %q: %s", step, gittest.Git(t, dir, "diff-tree", "-r", want, got.Tree))
		}
	}
}

// After a few deltas the newest tree is made whole, and the next ones lie on
// it; a sandbox with a delta keeps it.
func TestDeltasAreFlattened(t *testing.T) {
	dir := branchtest.ManyFiles(t)
	cache := layer.Cache{Dir: filepath.Join(t.TempDir(), "cache")}
	branchtest.NewOn(t, cache, dir, "first")
	var last *branchtest.Box
	for n := 0; last == nil || !last.Tree.Flatten; n++ {
		if n == 50 {
			t.Fatal("it is never time to flatten")
		}
		gittest.Shell(t, dir, fmt.Sprintf("echo %d > d1/e1/f1; git commit -qam step", n))
		last = branchtest.NewOn(t, cache, dir, fmt.Sprint("step", n))
	}
	ctx := gittest.Context(t)
	if err := cache.Flatten(ctx, last.Repository, last.Repository.HeadTree, git.Owner{}); err != nil {
		t.Fatal(err)
	}
	whole, err := cache.Tree(ctx, last.Repository, last.Repository.HeadTree, git.Owner{}, nil)
	if err != nil || whole.Below != "" {
		t.Fatalf("%+v %v, want a whole tree", whole, err)
	}
	had := layer.Cache{Dir: cache.Dir, Had: last.Layers}
	if again, err := had.Tree(ctx, last.Repository, last.Repository.HeadTree, git.Owner{}, nil); err != nil || again.Dir != last.Tree.Dir {
		t.Fatalf("%+v %v, want the delta that it had, %s", again, err, last.Tree.Dir)
	}
	gittest.Shell(t, dir, "echo next > d1/e1/f1; git commit -qam next")
	next := branchtest.NewOn(t, cache, dir, "next")
	if next.Tree.Below != whole.Dir || next.Tree.Flatten {
		t.Fatalf("%+v, want a delta on %s", next.Tree, whole.Dir)
	}
	next.Shows()
}

// Many sandboxes that start from a new commit at once share one delta.
func TestDeltaIsSharedByThoseWhoRaceForIt(t *testing.T) {
	dir := branchtest.ManyFiles(t)
	cache := layer.Cache{Dir: filepath.Join(t.TempDir(), "cache")}
	branchtest.NewOn(t, cache, dir, "first")
	gittest.Shell(t, dir, "echo changed > d1/e1/f1; git commit -qam step")
	r := gittest.Open(t, dir)
	got := make([][]string, 10)
	errs := make([]error, 10)
	var all sync.WaitGroup
	for i := range got {
		all.Go(func() {
			var made layer.Layers
			made, errs[i] = cache.Layers(gittest.Context(t), r, r.Head, r.HeadTree, git.Owner{}, nil)
			got[i] = made.Dirs
		})
	}
	all.Wait()
	for i := range got {
		if errs[i] != nil || len(got[i]) != 3 || !cmp.Equal(got[i], got[0]) {
			t.Fatalf("%d: %q %v", i, got[i], errs[i])
		}
	}
}

// A delta of an earlier boot, whose files may be short, is made again.
func TestDeltaIsMadeAgainAfterAReboot(t *testing.T) {
	dir := branchtest.ManyFiles(t)
	cache := layer.Cache{Dir: filepath.Join(t.TempDir(), "cache")}
	branchtest.NewOn(t, cache, dir, "first")
	gittest.Shell(t, dir, "echo changed > d1/e1/f1; git rm -q d2/e2/f2; git commit -qam step")
	b := branchtest.NewOn(t, cache, dir, "before")
	markers, err := filepath.Glob(filepath.Join(cache.Dir, "*/*/complete"))
	if err != nil || len(markers) < 4 {
		t.Fatal(markers, err)
	}
	for _, m := range markers {
		if err := os.WriteFile(m, []byte("another boot"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Truncate(filepath.Join(b.Tree.Dir, "d1/e1/f1"), 0); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(b.Tree.Dir, "d2/e2/f2")); err != nil { // the whiteout
		t.Fatal(err)
	}
	again := branchtest.NewOn(t, cache, dir, "after")
	if !cmp.Equal(again.Layers, b.Layers) {
		t.Fatalf("other layers: %q, were %q", again.Layers, b.Layers)
	}
	again.Shows()
}
