package fault_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// Another place for the state helps if the state is read-only, but not if a
// repository is.
func TestReadOnlyHint(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_STATE_HOME", dir)
	state, repository := filepath.Join(dir, "litterbox"), filepath.Join(dir, "project")
	for _, made := range []string{state, repository} {
		if err := os.Mkdir(made, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	look := "findmnt --target "
	why := " tells why nothing can be written there"
	elsewhere := "; export XDG_STATE_HOME=/a/writable/directory keeps litterbox's state elsewhere"
	for path, want := range map[string]string{
		filepath.Join(state, "file"):      look + state + why + elsewhere,
		filepath.Join(repository, "file"): look + repository + why,
	} {
		if got := fault.HintOf(&fs.PathError{Op: "open", Path: path, Err: syscall.EROFS}); got != want {
			t.Errorf("%s: the hint is %q, want %q", path, got, want)
		}
	}
}
