//go:build !linux

package hostile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// errNotDirectory is the error for a directory that has become something else,
// where the kernel does not say so itself.
var errNotDirectory = errors.New("it is not a directory")

// Root opens a directory below the directory top as an [os.Root]. No part of path is
// followed if it is a link, also when it becomes one meanwhile.
func Root(top, path string) (*os.Root, error) {
	root, err := opened(top, os.Lstat, os.OpenRoot)
	if err != nil || filepath.Clean(path) == "." {
		return root, err
	}
	for part := range strings.SplitSeq(filepath.Clean(path), string(filepath.Separator)) {
		below, err := opened(part, root.Lstat, root.OpenRoot)
		if err = errors.Join(err, root.Close()); err != nil {
			return nil, err
		}
		root = below
	}
	return root, nil
}

// opened opens a directory by a name, and makes sure that it is the one that the name
// itself was, and no other one that a link leads to.
func opened(name string, look func(string) (os.FileInfo, error), open func(string) (*os.Root, error)) (*os.Root, error) {
	seen, err := look(name)
	if err == nil && !seen.IsDir() {
		err = errNotDirectory
	}
	if err != nil {
		return nil, err
	}
	root, err := open(name)
	if err != nil {
		return nil, err
	}
	found, err := root.Stat(".")
	if err == nil && !os.SameFile(seen, found) {
		err = errNotDirectory
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return root, nil
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
