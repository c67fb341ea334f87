package branch_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/litterbox-sandbox/litterbox/internal/branch/branchtest"
	"github.com/litterbox-sandbox/litterbox/internal/git/gittest"
)

// Import makes the same tree of an upper directory as git of the merged view,
// whatever was done, iteration after iteration.
func TestImportMakesTheTreeGitMakes(t *testing.T) {
	for seed := range uint64(16) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			b := branchtest.New(t, gittest.Repository(t), "fix")
			for round := range uint64(6) {
				if seed >= 12 && round > 0 { // above what was frozen, as after snapshots
					b.Freeze()
				}
				s := branchtest.Inside{Layers: b.Layers, Upper: b.Upper, Work: b.Work, Target: b.Target, Seed: 1 + seed*100 + round, Script: branchtest.GitTree}
				want, listing, _ := strings.Cut(s.Run(t), "\n")
				result := b.ImportNow()
				if result.Tree != want {
					t.Fatalf("round %d: the trees differ (-git +import):\n%s\nnotes %q", round,
						cmp.Diff(strings.Split(listing, "\n"), strings.Split(gittest.Git(t, b.Repository.Top, "ls-tree", "-r", result.Tree), "\n")), result.Notes)
				}
				if tip := gittest.Git(t, b.Repository.Top, "rev-parse", "refs/heads/fix"); tip != result.Commit {
					t.Fatalf("branch at %s, want %s", tip, result.Commit)
				}
				if round == 3 { // a lost cache costs time, nothing else
					if err := os.Remove(b.State); err != nil {
						t.Fatal(err)
					}
					q := b.Request()
					q.Last = result.Commit
					if again := b.ImportAs(q); again.Tree != want || again.Changed != 0 {
						t.Fatalf("rebuilt: %+v, want tree %s unchanged", again, want)
					}
				}
			}
			if out := gittest.Git(t, b.Repository.Top, "fsck", "--full", "--strict"); strings.Contains(out, "error") {
				t.Fatal(out)
			}
		})
	}
}
