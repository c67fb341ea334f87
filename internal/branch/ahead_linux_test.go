package branch_test

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/litterbox-sandbox/litterbox/internal/branch/branchtest"
	"github.com/litterbox-sandbox/litterbox/internal/git/gittest"
)

// Among many files that are read ahead of the walk are those that need more than
// reading: the tree is git's all the same, and the notes stand in order.
func TestFilesReadAhead(t *testing.T) {
	dir := gittest.Repository(t)
	gittest.Write(t, dir, "b/.gitattributes", "*.crlf text\n")
	gittest.Shell(t, dir, "git add -A; git commit -qm attributes")
	b := branchtest.New(t, dir, "fix")
	plain := t.TempDir() // the same without litterbox: git's own word
	gittest.Git(t, dir, "worktree", "add", "--quiet", "--detach", plain)
	step := func(script string) {
		t.Helper()
		b.Inside(script + "; mkfifo a/300-pipe z-pipe; truncate -s 1G a/150-hole")
		q := b.Request()
		q.Limits.Holes, q.Limits.FileSize = 1<<20, 2<<20
		got := b.ImportAs(q)
		if out, err := exec.Command("sh", "-ec", "cd "+plain+" && { "+script+"; }").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		gittest.Git(t, plain, "add", "--all", ":!*-large")
		if want := gittest.Git(t, plain, "write-tree"); got.Tree != want {
			t.Fatalf("the tree is %s, want %s\n%s", got.Tree, want, gittest.Git(t, plain, "diff", "--stat", got.Tree, want))
		}
		want := []string{
			`"a/150-hole" stays as last committed: it is larger than 2097152 bytes`,
			`"a/200-large" stays as last committed: it is larger than 2097152 bytes`,
			`"a/300-pipe" stays out: git cannot hold a socket, pipe or device`,
			`"z-pipe" stays out: git cannot hold a socket, pipe or device`,
		}
		if diff := cmp.Diff(want, got.Notes); diff != "" {
			t.Fatal(diff)
		}
	}
	many := func(text string) string {
		return fmt.Sprintf("mkdir -p a b c/d; for i in $(seq 100 399); do echo %s $i > a/$i; echo %s > b/$i; echo $i > c/d/$i; done; "+
			"for i in 1 2 3; do printf 'one\\r\\n%s\\r\\n' > b/$i.crlf; ln -sf $i a/10$i-link; done; chmod +x a/17? c/d/199; "+
			"head -c 1000000 /dev/zero | tr '\\0' %s > a/180-larger; head -c 3000000 /dev/zero > a/200-large", text, text, text, text[:1])
	}
	step(many("first"))
	b.Inside("rm -f a/300-pipe z-pipe")
	step(strings.ReplaceAll(many("second"), "199", "198"))
}
