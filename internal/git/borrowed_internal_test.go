package git

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Stores are followed as git does, up to the first of another user.
func TestForeignStores(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	put := func(name, alternates string) string {
		t.Helper()
		dir := filepath.Join(top, name)
		if err := os.MkdirAll(filepath.Join(dir, "info"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "info/alternates"), []byte(alternates), 0o644); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	put("deep", "")
	put("other name", "# none\n../deep\n")
	put("loop", "../loop\n")
	objects := put("objects", "# a comment\n\n../none\n../other\\040name\n\""+top+"/other name\"\n../loop\n")
	us := os.Geteuid()
	paths := func(found []store) (paths []string) {
		for _, one := range found {
			if one.uid != us {
				t.Errorf("%s belongs to %d", one.path, one.uid)
			}
			paths = append(paths, filepath.Base(one.path))
		}
		return paths
	}
	if got := foreignStores(objects, []int{us}, 0); got != nil {
		t.Errorf("our own are foreign: %v", got)
	}
	if diff := cmp.Diff([]string{"other name", "loop"}, paths(foreignStores(objects, nil, 0))); diff != "" {
		t.Errorf("(- want, + got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"deep"}, paths(foreignStores(filepath.Join(top, "other name"), nil, 0))); diff != "" {
		t.Errorf("(- want, + got):\n%s", diff)
	}
}
