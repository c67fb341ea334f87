package stage

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// An entry of /etc that was there a moment ago, as the files of useradd(8) are, keeps
// no place from being made.
func TestEntryOfEtcIsGone(t *testing.T) {
	name := filepath.Join(t.TempDir(), "litterbox-test-gone.lock")
	for kind, make := range map[string]func() error{
		"a file":      func() error { return os.WriteFile(name, nil, 0o600) },
		"a directory": func() error { return os.Mkdir(name, 0o700) },
		"a link":      func() error { return os.Symlink("elsewhere", name) },
	} {
		if err := make(); err != nil {
			t.Fatal(err)
		}
		info, err := os.Lstat(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
		var a assembly
		a.config.Root = t.TempDir()
		if err := a.etcEntry(fs.FileInfoToDirEntry(info)); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}
