package git_test

import (
	"path/filepath"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/branch/branchtest"
	"github.com/litterbox-sandbox/litterbox/internal/git/gittest"
)

// A process that was started ahead serves the commit that follows; an unused
// one leaves nothing behind, and neither does one for another sandbox.
func TestPrefetch(t *testing.T) {
	dir := gittest.Repository(t)
	b := branchtest.New(t, dir, "box")
	b.Alone = true // processes are counted
	started := gitLog(t)
	gittest.Write(t, b.Upper, "one", "1\n")
	b.Repository.Prefetch(b.State, false)
	b.ImportNow()
	if n := started(); n != 1 {
		t.Errorf("%d processes for a commit with a prefetch", n)
	}
	gittest.Write(t, b.Upper, "two", "2\n")
	b.Repository.Prefetch(filepath.Join(t.TempDir(), "delta"), false)
	b.ImportNow()
	b.Repository.EndPrefetch()
	if n := started(); n != 2 {
		t.Errorf("%d processes for a commit beside another sandbox's prefetch", n)
	}
	for _, pattern := range []string{"fast_import_crash_*", "objects/pack/tmp_*", "objects/pack/*.keep"} {
		if found, err := filepath.Glob(filepath.Join(dir, ".git", pattern)); err != nil || len(found) > 0 {
			t.Errorf("left behind: %q, %v", found, err)
		}
	}
	if files := gittest.Git(t, dir, "ls-tree", "--name-only", "box", "one", "two"); files != "one\ntwo" {
		t.Errorf("the branch holds %q", files)
	}
}
