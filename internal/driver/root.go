package driver

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// trashDir is the directory of deleted sandboxes in the one of all state, whose
// layout it repeats (package store).
const trashDir = "trash"

// Root returns the directory of all state that the directory of a sandbox lies in,
// also when the sandbox is deleted: ROOT/sandboxes/ID, ROOT/trash/sandboxes/ID.
func Root(stateDir string) string {
	root := filepath.Dir(filepath.Dir(stateDir))
	for filepath.Base(root) == trashDir {
		root = filepath.Dir(root)
	}
	return root
}

// Kept reports whether a sandbox has a directory below the directory of all state, one
// that is deleted and whose files are kept as well.
func Kept(root, id string) (bool, error) {
	for _, dir := range []string{root, filepath.Join(root, trashDir)} {
		_, err := os.Lstat(filepath.Join(dir, "sandboxes", id))
		if !errors.Is(err, fs.ErrNotExist) {
			return err == nil, err
		}
	}
	return false, nil
}

// Records lists the files called name in the directories of sandboxes below the
// directory of all state, of deleted ones whose files are kept as well.
func Records(root, name string) ([]string, error) {
	alive, err := filepath.Glob(filepath.Join(root, "sandboxes", "*", name))
	if err != nil {
		return nil, err
	}
	deleted, err := filepath.Glob(filepath.Join(root, trashDir, "sandboxes", "*", name))
	return append(alive, deleted...), err
}
