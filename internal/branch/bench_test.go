package branch_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/branch"
	"github.com/litterbox-sandbox/litterbox/internal/branch/branchtest"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/git/gittest"
	"github.com/litterbox-sandbox/litterbox/internal/layer"
)

// Commit of ten changed files must cost the same in a small and a large
// repository: compare the lines.
func BenchmarkImport(b *testing.B) {
	for _, files := range []int{100, 15_000, 100_000} {
		b.Run(fmt.Sprint(files), func(b *testing.B) {
			x := benchBox(b, files)
			n := 0
			for b.Loop() {
				n++
				for i := range 10 {
					path := filepath.Join(x.Upper, fmt.Sprintf("d%d/e0/f%d", i, i))
					if err := os.WriteFile(path, fmt.Appendf(nil, "%d %d\n", n, i), 0o644); err != nil {
						b.Fatal(err)
					}
				}
				if result, err := branch.Import(gittest.Context(b), x.Repository, x.Request()); err != nil || result.Changed != 10 {
					b.Fatal(result, err)
				} else if result.Packing == git.PackingOverdue {
					if err := x.Repository.Consolidate(gittest.Context(b), x.Consolidation()); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// BenchmarkImportMany commits 100,000 small files in 1000 directories, new ones and
// then changed ones. TMPDIR chooses where they are.
func BenchmarkImportMany(b *testing.B) {
	x := benchBox(b, 100)
	n := 0
	for b.Loop() {
		n++
		b.StopTimer()
		for i := range 100_000 {
			path := filepath.Join(x.Upper, fmt.Sprintf("new/%d/f%d", i/100, i))
			if i%100 == 0 {
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					b.Fatal(err)
				}
			}
			if err := os.WriteFile(path, fmt.Appendf(nil, "file %d %d\nof a repository\n", n, i), 0o644); err != nil {
				b.Fatal(err)
			}
		}
		b.StartTimer()
		if result, err := branch.Import(gittest.Context(b), x.Repository, x.Request()); err != nil || result.Changed != 100_000 {
			b.Fatal(result, err)
		}
	}
}

// BenchmarkImportNothing measures what every command that changes nothing pays.
func BenchmarkImportNothing(b *testing.B) {
	x := benchBox(b, 100)
	for b.Loop() {
		result, err := branch.Import(gittest.Context(b), x.Repository, x.Request())
		if err == nil && result.Packing == git.PackingOverdue {
			err = x.Repository.Consolidate(gittest.Context(b), x.Consolidation())
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}

func benchBox(b testing.TB, files int) *branchtest.Box {
	b.Helper()
	dir := gittest.Repository(b)
	for i := range files {
		gittest.Write(b, dir, fmt.Sprintf("d%d/e%d/f%d", i%100, i/100%100, i), fmt.Sprintln(i))
	}
	gittest.Shell(b, dir, "git add -A; git -c gc.auto=0 commit -qm many; git repack -adq")
	x := branchtest.New(b, dir, "fix")
	for i := range 10 {
		if err := os.MkdirAll(filepath.Join(x.Upper, fmt.Sprintf("d%d/e0", i)), 0o755); err != nil {
			b.Fatal(err)
		}
	}
	return x
}

// The first checkout of a tree, beside git's own.
func BenchmarkCheckout(b *testing.B) {
	dir := gittest.Repository(b)
	for i := range 15_000 {
		gittest.Write(b, dir, fmt.Sprintf("d%d/f%d", i%200, i), fmt.Sprintln(i))
	}
	gittest.Shell(b, dir, "git add -A; git -c gc.auto=0 commit -qm many; git repack -adq")
	r := gittest.Open(b, dir)
	place, n := b.TempDir(), 0
	b.Run("Tree", func(b *testing.B) {
		for b.Loop() {
			n++
			cache := layer.Cache{Dir: filepath.Join(place, fmt.Sprint(n))}
			if _, err := cache.Tree(gittest.Context(b), r, r.HeadTree, git.Owner{}, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("git-worktree-add", func(b *testing.B) {
		for b.Loop() {
			n++
			gittest.Git(b, dir, "worktree", "add", "-q", "--detach", filepath.Join(place, fmt.Sprint(n)))
		}
	})
}
