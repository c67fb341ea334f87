package branch_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/litterbox-sandbox/litterbox/internal/branch/branchtest"
	"github.com/litterbox-sandbox/litterbox/internal/git/gittest"
)

// Frozen files are part of the changes, whatever overlayfs wrote above them to
// say that something is gone.
func TestImportAboveFrozenLayers(t *testing.T) {
	dir := gittest.Repository(t)
	for _, name := range []string{"kept/a", "kept/b", "gone/a", "gone/b", "swap/dir/a", "swap/file", "mode", "big"} {
		gittest.Write(t, dir, name, name+"\n")
	}
	gittest.Write(t, dir, ".gitignore", "ignored/\n*.log\n")
	gittest.Shell(t, dir, "git add -A; git commit -qm more")
	b := branchtest.New(t, dir, "fix")
	steps := []struct{ name, script string }{
		{"changes, ignored files and a repository", "echo 1 >new; echo 1 >kept/a; mkdir -p ignored/deep; echo i >ignored/deep/f; echo l >x.log; chmod +x mode; mkdir own; git init -q own; touch own/f"},
		{"removals of what the base and a frozen layer have", "rm new kept/b; rm -r gone; rm -r ignored/deep; echo 2 >later"},
		{"opaque directories", "mkdir gone; echo 2 >gone/c; rm -r kept; mkdir kept; echo 3 >kept/c"},
		{"kinds change places", "rm -r swap/dir swap/file; echo f >swap/dir; mkdir swap/file; echo d >swap/file/a; chmod -x mode; ln later hard; ln -s later soft"},
		{"renames of what is frozen", "mv later moved; mv gone/c kept/d; rmdir gone; echo 4 >hard"},
		{"rules change below", "echo '*.md' >swap/file/.gitignore; echo m >swap/file/x.md; echo '!x.log' >>.gitignore; truncate -s 1M sparse"},
		{"rules of a frozen layer count", "echo m >swap/file/y.md; rm soft"},
		{"nothing", ":"},
	}
	for n, step := range steps {
		if n > 0 {
			b.Freeze()
		}
		want, listing, _ := strings.Cut(b.Inside(step.script+"\nrm -rf own/.git.away; [ ! -d own ] || mv own .git/own-away\n"+branchtest.GitTree+"\n[ ! -d .git/own-away ] || mv .git/own-away own"), "\n")
		result := b.ImportNow()
		if result.Tree != want {
			t.Fatalf("%s: the trees differ (-git +import):\n%s\nnotes %q", step.name,
				cmp.Diff(strings.Split(listing, "\n"), strings.Split(gittest.Git(t, dir, "ls-tree", "-r", result.Tree), "\n")), result.Notes)
		}
		if at := slices.IndexFunc(result.Notes, func(note string) bool { return strings.HasPrefix(note, `"own" stays out`) }); at < 0 {
			t.Errorf("%s: nothing is said of the repository inside: %q", step.name, result.Notes)
		}
		if step.name == "nothing" && result.Changed != 0 {
			t.Errorf("a step without changes changes %d paths: %q", result.Changed, result.Paths)
		}
		b.Freeze() // what a snapshot does changes nothing
		if again := b.ImportNow(); again.Tree != want || again.Changed != 0 {
			t.Errorf("%s: frozen, it is another tree: %d paths %q", step.name, again.Changed, again.Paths)
		}
	}
}
