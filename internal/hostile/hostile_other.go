//go:build !linux

package hostile

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// errNotDirectory is the error for a directory that has become something else,
// where the kernel does not say so itself.
var errNotDirectory = errors.New("it is not a directory")

// Root opens a directory below the directory top as an [os.Root].
func Root(top, path string) (*os.Root, error) {
	info, err := os.Lstat(filepath.Join(top, path))
	if err == nil && !info.IsDir() {
		err = errNotDirectory
	}
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(top)
	if err != nil {
		return nil, err
	}
	below, err := root.OpenRoot(path)
	return below, errors.Join(err, root.Close())
}

// Remove removes a tree. Only Linux has sandboxes' own files.
func Remove(path string) error { return os.RemoveAll(path) }

// Walk calls visit for path and everything below it.
func Walk(path string, visit func(Entry)) {
	_ = filepath.WalkDir(path, func(_ string, entry os.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		info, err := entry.Info()
		if stat, ok := sys(info, err); ok {
			visit(Entry{Device: uint64(stat.Dev), Inode: uint64(stat.Ino), Bytes: stat.Blocks * 512})
		}
		return nil
	})
}

func sys(info os.FileInfo, err error) (*syscall.Stat_t, bool) {
	if err != nil {
		return nil, false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return stat, ok
}
