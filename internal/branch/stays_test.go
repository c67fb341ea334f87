package branch_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/litterbox-sandbox/litterbox/internal/branch/branchtest"
	"github.com/litterbox-sandbox/litterbox/internal/git/gittest"
	"github.com/litterbox-sandbox/litterbox/internal/layer"
)

// Of a directory that can be listed and not entered, everything stays as it was
// last committed: what cannot be looked at has not vanished.
func TestNamesThatCannotBeLookedAt(t *testing.T) {
	for name, box := range map[string]func() *branchtest.Box{
		"overlay": func() *branchtest.Box { return branchtest.New(t, gittest.Repository(t), "fix") },
		"copy": func() *branchtest.Box {
			return branchtest.NewCopy(t, layer.Cache{Dir: filepath.Join(t.TempDir(), "cache")}, gittest.Repository(t), "fix")
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := box()
			b.Inside("mkdir -p new/deep ignored; echo 'ignored/*' >.gitignore; echo one >new/deep/file; echo two >>src/main.c; echo three >ignored/file")
			committed := b.ImportNow().Tree
			b.Inside("chmod 400 new/deep new src ignored")
			got := b.ImportNow()
			if got.Tree != "" && got.Tree != committed {
				t.Errorf("the branch changes: %s", b.Show("diff", committed, got.Tree))
			}
			want := []string{`"new/deep" stays as last committed: it cannot be read`, `"src/lib" stays as last committed: it cannot be read`, `"src/main.c" stays as last committed: it cannot be read`}
			if name == "overlay" { // the upper directory has only what changed
				want = slices.Delete(want, 1, 2)
			}
			if os.Geteuid() == 0 { // root reads everything
				want = nil
			}
			if diff := cmp.Diff(want, got.Notes); diff != "" {
				t.Errorf("(- want, + got):\n%s", diff)
			}
			b.Inside("chmod 700 new src ignored; chmod 700 new/deep; echo four >>new/deep/file")
			b.ImportNow()
			if got := b.Show("show", "fix:new/deep/file"); got != "one\nfour" {
				t.Errorf("afterwards: %q", got)
			}
		})
	}
}
