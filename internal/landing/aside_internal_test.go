package landing

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A name that is taken stays what it is, by the system's own call and where a file
// system does not have it, as systems say in different words.
func TestRenameNewReplacesNothing(t *testing.T) {
	without := func(err error) func(string, string) error { return func(string, string) error { return err } }
	for name, exclusive := range map[string]func(string, string) error{
		"the call of this system":        renameExclusive,
		"Linux, another file system":     without(syscall.EINVAL),
		"Linux, an old kernel":           without(syscall.ENOSYS),
		"a Mac, another file system":     without(syscall.ENOTSUP),
		"a Mac, a volume of the network": without(syscall.EOPNOTSUPP),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			mine, taken, free := filepath.Join(dir, "mine"), filepath.Join(dir, "taken"), filepath.Join(dir, "free")
			for file, text := range map[string]string{mine: "mine", taken: "taken"} {
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Symlink("nowhere", filepath.Join(dir, "link")); err != nil {
				t.Fatal(err)
			}
			for _, to := range []string{taken, filepath.Join(dir, "link")} {
				if err := renameBy(exclusive, mine, to); !errors.Is(err, fs.ErrExist) {
					t.Errorf("a rename to %s: %v", to, err)
				}
			}
			if text, err := os.ReadFile(taken); err != nil || string(text) != "taken" {
				t.Errorf("the name that was taken holds %q, %v", text, err)
			}
			if err := renameBy(exclusive, mine, free); err != nil {
				t.Error(err)
			}
			if text, err := os.ReadFile(free); err != nil || string(text) != "mine" {
				t.Errorf("the new name holds %q, %v", text, err)
			}
		})
	}
	if err := renameBy(without(syscall.EXDEV), "a", "b"); !errors.Is(err, syscall.EXDEV) {
		t.Errorf("another file system: %v", err)
	}
}
