package branch_test

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
)

const mib = 1 << 20

// staysFor is the note on a file that is too sparse.
func staysFor(path string, holes, size int) string {
	return fmt.Sprintf("%q stays as last committed: it is sparse, and %d of its %d bytes are holes; to commit it, fill them (cp --sparse=never FILE COPY)", path, holes, size)
}

// A hole costs a sandbox nothing, so the cost of many of them to the host is bounded.
func TestSparseFilesAreLeftAlone(t *testing.T) {
	b := branchtest.New(t, gittest.Repository(t), "fix")
	b.Inside("truncate -s 3G a-giant; echo end >> a-giant; for i in 1 2 3; do truncate -s 1M b-hole-$i; done; head -c 4M /dev/zero > c-zeros; echo small > d-small; truncate -s 4000 e-page")
	q := b.Request()
	q.Limits.Holes = 5 << 19
	got := b.ImportAs(q)
	want := []string{staysFor("a-giant", 3<<30, 3<<30+4), staysFor("b-hole-3", mib, mib)}
	if diff := cmp.Diff(want, got.Notes); diff != "" {
		t.Fatal(diff)
	}
	if files := b.Show("ls-tree", "--name-only", "fix", "--", "b-hole-1", "b-hole-2", "c-zeros", "d-small", "e-page"); files != "b-hole-1\nb-hole-2\nc-zeros\nd-small\ne-page" {
		t.Fatalf("committed were\n%s", files)
	}
	b.Inside("rm a-giant b-hole-1 b-hole-2")
	if got := b.ImportAs(q); len(got.Notes) != 0 || got.Changed != 3 {
		t.Fatalf("with room again: %+v", got)
	}
}

// hollow makes files sparse that have zeros.
const hollow = `hollow() { for f; do cp --sparse=always "$f" .hollow; mv .hollow "$f"; done; }; `

// sparseRepository holds 300 KiB of zeros in each of some files.
func sparseRepository(t testing.TB) string {
	dir := gittest.Repository(t)
	gittest.Shell(t, dir, `mkdir -p data/deep; for f in big data/one data/deep/two; do { echo $f; head -c 300K /dev/zero; echo $f; } > $f; done; git add -A; git commit -qm data`)
	return dir
}

// Content that git already holds is not growth, whatever becomes of it: each step
// must give the tree that git makes of it, though only 100 KiB of holes are allowed.
func TestHolesThatGitHoldsAreCommitted(t *testing.T) {
	for name, steps := range map[string][]string{
		"a byte":            {"hollow big; printf X >> big", "printf Y >> big; hollow big"},
		"a rename":          {"hollow big; mv big other", "echo more >> other", "mv other data/again; echo more >> data/again"},
		"another directory": {"mkdir moved; cp -r data/. moved; hollow moved/one moved/deep/two; rm -r data", "echo more >> moved/deep/two; mv moved/deep data"},
		"a rotation":        {"hollow big; mv big big.1; echo new > big", "mv big.1 big.2; mv big big.1; echo new > big"},
		"in place of":       {"hollow big; mv big data/one; echo more >> data/one"},
		"a directory":       {"hollow big; mv big other; mkdir big; mv other big/file", "mv big/file other; rmdir big; mv other big; echo more >> big"},
		"written inside":    {"{ echo x; head -c 500K /dev/zero; } > new", "hollow new; echo more >> new", "mv new newer; hollow newer", "echo more >> newer"},
		"a little more":     {"hollow big; truncate -s +96K big", "echo more >> big"},
		"smaller":           {"hollow big; truncate -s 200K big"},
		"a link":            {"ln -s README data/link", "rm data/link; hollow big; mv big data/link; echo more >> data/link"},
	} {
		for _, kind := range []string{"layers", "copy"} {
			t.Run(name+" "+kind, func(t *testing.T) {
				b := sparseBox(t, kind)
				for n, step := range steps {
					want, listing, _ := strings.Cut(b.Inside(hollow+step+"\n"+branchtest.GitTree), "\n")
					q := b.Request()
					q.Limits.Holes = 100 << 10
					got := b.ImportAs(q)
					if got.Tree != want || len(got.Notes) > 0 {
						t.Fatalf("%q: %q\n%s", step, got.Notes, cmp.Diff(strings.Split(listing, "\n"), strings.Split(b.Show("ls-tree", "-r", got.Tree), "\n")))
					}
					if n > 0 {
						continue
					}
					// A lost cache forgets sizes, too.
					if err := os.Remove(b.State); err != nil {
						t.Fatal(err)
					}
					q.Last = got.Commit
					if again := b.ImportAs(q); again.Tree != want || len(again.Notes) > 0 {
						t.Fatalf("rebuilt: %+v", again)
					}
				}
			})
		}
	}
}

func sparseBox(t testing.TB, kind string) *branchtest.Box {
	t.Helper()
	dir := sparseRepository(t)
	if kind == "copy" {
		return branchtest.NewCopy(t, layer.Cache{Dir: filepath.Join(t.TempDir(), "cache")}, dir, "fix")
	}
	return branchtest.New(t, dir, "fix")
}

// No series of steps, each allowed alone, leads to a giant: after every commit the
// branch holds no more than 100 KiB of holes that it did not hold at the start.
func TestHolesDoNotAddUp(t *testing.T) {
	for name, step := range map[string]string{ // $n counts
		"one grows":                        "truncate -s $((n * 40))K new",
		"many":                             "truncate -s 60K new$n",
		"hidden by renames":                "truncate -s 60K new; mv new new$n",
		"in place of one that was":         "hollow big; mv big other$n; truncate -s 310K big",
		"one grows in place":               "hollow big; truncate -s +60K big",
		"a copy":                           "hollow big; cp big copy$n",
		"from one path to another":         "truncate -s $((n * 40))K new$n; rm -f new$((n - 1))",
		"smaller and larger again":         "hollow big; truncate -s $((n % 2 * 300))K big; truncate -s 310K new$n",
		"a directory in place of another":  "mv data data$n; mkdir -p data; truncate -s 310K data/one; hollow data$n/* data$n/*/* 2>/dev/null || :",
		"a link in between":                "rm -f new; truncate -s $((n * 40))K new; mv new keep$n; ln -sf keep$n new",
		"a file that cannot be taken goes": "truncate -s 310K giant; truncate -s 60K new$n; mv giant new$n.giant",
	} {
		for _, kind := range []string{"layers", "copy"} {
			t.Run(name+" "+kind, func(t *testing.T) {
				b := sparseBox(t, kind)
				size := func() (sum int) {
					for line := range strings.Lines(b.Show("ls-tree", "-r", "-l", "fix")) {
						var mode, typ, oid string
						var n int
						if _, err := fmt.Sscan(line, &mode, &typ, &oid, &n); err != nil {
							t.Fatalf("%q: %v", line, err)
						}
						sum += n
					}
					return sum
				}
				before, refused := size(), 0
				for n := 1; n <= 4; n++ {
					b.Inside(hollow + fmt.Sprintf("n=%d; ", n) + step)
					q := b.Request()
					q.Limits.Holes = 100 << 10
					refused += len(b.ImportAs(q).Notes)
					if grown := size() - before; grown > 101<<10 {
						t.Fatalf("after %d steps the branch holds %d bytes more", n, grown)
					}
				}
				if refused == 0 {
					t.Error("nothing was refused")
				}
			})
		}
	}
}
