package layer_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/litterbox-sandbox/litterbox/internal/branch/branchtest"
	"github.com/litterbox-sandbox/litterbox/internal/git/gittest"
	"github.com/litterbox-sandbox/litterbox/internal/layer"
	"golang.org/x/sys/unix"
)

// A copy is what git checks out, with an index that git trusts at once, even
// if the tree is one layer over another.
func TestCopyShowsTheTree(t *testing.T) {
	dir := branchtest.ManyFiles(t)
	cache := layer.Cache{Dir: filepath.Join(t.TempDir(), "cache")}
	branchtest.NewCopy(t, cache, dir, "whole").Shows()
	gittest.Shell(t, dir, "echo changed > d1/e1/f1; git rm -q -r tools d2/e2/f2; echo flat > tools; ln -sf d1 link; chmod +x d3/e0/f3")
	gittest.Shell(t, dir, "git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),vendor/sub; mkdir -p vendor/sub; git add -A .; git commit -qm step")
	b := branchtest.NewCopy(t, cache, dir, "delta")
	if b.Tree.Below == "" {
		t.Fatal("no delta")
	}
	b.Shows()
	if got := b.ImportNow(); got.Changed != 0 || gittest.Git(t, dir, "rev-parse", "HEAD^{tree}") != got.Tree {
		t.Fatalf("%+v, want nothing changed", got)
	}
}

// Import makes the same tree of a copy as git, whatever was done, iteration
// after iteration.
func TestImportOfACopyMakesTheTreeGitMakes(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			b := branchtest.NewCopy(t, layer.Cache{Dir: filepath.Join(t.TempDir(), "cache")}, gittest.Repository(t), "fix")
			for round := range uint64(6) {
				s := branchtest.Inside{Upper: b.Upper, Seed: 1 + seed*100 + round, Script: branchtest.GitTree}
				want, listing, _ := strings.Cut(s.Run(t), "\n")
				result := b.ImportNow()
				if result.Tree != want {
					t.Fatalf("round %d: the trees differ (-git +import):\n%s\nnotes %q", round,
						cmp.Diff(strings.Split(listing, "\n"), strings.Split(gittest.Git(t, b.Repository.Top, "ls-tree", "-r", result.Tree), "\n")), result.Notes)
				}
				switch round {
				case 2: // a lost cache costs time, nothing else
					if err := os.Remove(b.State); err != nil {
						t.Fatal(err)
					}
				case 4: // and so does a lost memory of what was copied
					if err := b.Copy().Forget(); err != nil {
						t.Fatal(err)
					}
				default:
					continue
				}
				q := b.Request()
				q.Last = result.Commit
				if again := b.ImportAs(q); again.Tree != want || again.Changed != 0 {
					t.Fatalf("rebuilt: %+v, want tree %s unchanged", again, want)
				}
			}
		})
	}
}

// Attributes that overlayfs would take for its own mean nothing in a copy: a
// sandbox can neither hide files with it nor stop its commits.
func TestCopyIgnoresOverlayNotes(t *testing.T) {
	b := branchtest.NewCopy(t, layer.Cache{Dir: filepath.Join(t.TempDir(), "cache")}, gittest.Repository(t), "fix")
	b.Inside("echo y > src/new; echo z >> README")
	for name, value := range map[string]string{
		"src:user.overlay.opaque": "y", ".:user.overlay.opaque": "y", "README:user.overlay.metacopy": "x", "src/new:user.overlay.redirect": "/etc",
	} {
		file, attribute, _ := strings.Cut(name, ":")
		if err := unix.Setxattr(filepath.Join(b.Upper, file), attribute, []byte(value), 0); err != nil {
			t.Fatal(err)
		}
	}
	want, _, _ := strings.Cut(b.Inside(branchtest.GitTree), "\n")
	if got := b.ImportNow(); got.Tree != want {
		t.Fatalf("%+v, want %s", got, want)
	}
	// A whiteout is a device like any other, which git cannot store.
	b.Inside("rm -r src/lib")
	if err := unix.Mknod(filepath.Join(b.Upper, "src/lib"), unix.S_IFCHR|0o600, 0); err != nil {
		t.Fatal(err)
	}
	if out := gittest.Git(t, b.Repository.Top, "ls-tree", "-r", "--name-only", b.ImportNow().Tree, "src/"); out != "src/main.c\nsrc/new" {
		t.Fatalf("in the tree: %q", out)
	}
}

// A lease (fcntl(2), F_SETLEASE) makes others wait until it is broken. The host
// waits for no sandbox: the file stays as last committed, with a note.
func TestLeasesDelayNoCommit(t *testing.T) {
	b := branchtest.NewCopy(t, layer.Cache{Dir: filepath.Join(t.TempDir(), "cache")}, gittest.Repository(t), "fix")
	b.Inside("echo more >> README; echo more >> src/main.c; mkdir leased; echo x > leased/.gitignore")
	for _, name := range []string{"README", "leased/.gitignore"} {
		f, err := os.Open(filepath.Join(b.Upper, name))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
			t.Skip("no leases on this file system: ", err)
		}
	}
	// The kernel tells who holds the lease with SIGIO, which Go drops.
	got := b.ImportNow()
	if got.Changed != 1 || !strings.Contains(strings.Join(got.Notes, "\n"), `"README" stays as last committed`) {
		t.Fatalf("%+v, want only src/main.c", got)
	}
}
