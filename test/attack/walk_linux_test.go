package attack_test

import (
	"errors"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// privileged lists set-user-id and set-group-id files below dir.
func (w *world) privileged(dir string) []string {
	return w.walk(dir, func(_ string, info fs.FileInfo) bool {
		return info.Mode().IsRegular() && info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0
	})
}

// attributed lists files with an attribute that changes an overlay's view,
// besides those that the kernel sets itself (origin, impure, opaque).
func (w *world) attributed(dir string) []string {
	return w.walk(dir, func(path string, _ fs.FileInfo) bool {
		for _, name := range []string{"user.overlay.redirect", "user.overlay.metacopy", "trusted.overlay.redirect", "trusted.overlay.metacopy", "security.capability"} {
			if _, err := unix.Lgetxattr(path, name, nil); err == nil {
				return true
			}
		}
		return false
	})
}

func (w *world) walk(dir string, wanted func(string, fs.FileInfo) bool) []string {
	w.Helper()
	var found []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			if entry != nil && entry.Name() == "work" {
				return nil // the kernel's own, without permissions
			}
			if path != dir && errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a keeper rewrites its records while we look
		}
		if err == nil && wanted(path, info) {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		w.Fatal(err)
	}
	return found
}

// upper returns the directory of the sandbox's changes on the host.
func (w *world) upper() string {
	w.Helper()
	found, err := filepath.Glob(filepath.Join(w.State, "litterbox/sandboxes", box+"-*", "upper"))
	if err != nil || len(found) != 1 {
		w.Fatalf("cannot find the sandbox's upper directory: %q, %v", found, err)
	}
	return found[0]
}
