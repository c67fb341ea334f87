package layer_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/litterbox-sandbox/litterbox/internal/layer"
)

// A directory that the sandbox removes between its opening and its listing has
// no names left; the other parts of it keep theirs.
func TestNamesOfADirectoryThatIsRemoved(t *testing.T) {
	t.Parallel()
	upper, below := t.TempDir(), t.TempDir()
	for _, path := range []string{filepath.Join(upper, "turn"), filepath.Join(below, "turn/kept"), filepath.Join(upper, "alone")} {
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	w, err := layer.OpenWritten(upper, []string{below}, false)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for name, want := range map[string][]string{"turn": {"kept"}, "alone": nil} {
		dir, err := w.Walk(name)
		if err != nil {
			t.Fatal(err)
		}
		defer dir.Close()
		if err := os.Remove(filepath.Join(upper, name)); err != nil {
			t.Fatal(err)
		}
		got, err := dir.Names()
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (- want, + got):\n%s", name, err, diff)
		}
	}
}
