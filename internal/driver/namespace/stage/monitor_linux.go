package stage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/fsmonitor"
)

// monitor gives git inside what it needs to find changed files: the upper
// directory, read-only, and the program that lists it, which is ours. Neither
// is more than the sandbox already has: its own changes, and a program without
// rights.
func (a assembly) monitor() error {
	if len(a.config.Workspace.Layers) == 0 {
		return nil // a copy: nothing tells changed files from others
	}
	err := a.bindReadOnly(a.config.Workspace.Upper, fsmonitor.Changes, true, unix.MOUNT_ATTR_NOEXEC)
	if err != nil {
		return err
	}
	for n, layer := range a.frozen {
		if err := a.bindReadOnly(layer, filepath.Join(fsmonitor.Frozen, strconv.Itoa(n)), true, unix.MOUNT_ATTR_NOEXEC); err != nil {
			return err
		}
	}
	if err := os.Symlink(a.config.Workspace.Path, filepath.Join(a.config.Root, fsmonitor.Workspace)); err != nil {
		return err
	}
	if err := a.history(); err != nil {
		return err
	}
	program, err := ownProgram()
	if err == nil {
		return a.bindReadOnly(program, fsmonitor.Program, false, 0)
	}
	// A failing hook makes git look at everything, as it would without one.
	return unforked(func() error {
		return os.WriteFile(filepath.Join(a.config.Root, fsmonitor.Program), []byte("#!/bin/sh\nexit 1\n"), 0o755)
	})
}

func (a assembly) bindReadOnly(source, name string, dir bool, attributes uint64) error {
	return a.onTarget(name, dir, func(at string) error {
		tree, err := unix.OpenTree(unix.AT_FDCWD, source, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_SYMLINK_NOFOLLOW)
		if err != nil {
			return fmt.Errorf("cannot clone the mount of %q: %w", source, err)
		}
		defer unix.Close(tree)
		attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | attributes}
		if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH, &attr); err != nil {
			return fmt.Errorf("cannot make %q read-only: %w", source, err)
		}
		return moveMount(tree, at)
	})
}

// ownProgram is the path of the running program, if it still is there: one held
// in memory, or replaced by an update, has no mountable path.
func ownProgram() (string, error) {
	path, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return "", err
	}
	var running, there unix.Stat_t
	if err := errors.Join(unix.Stat("/proc/self/exe", &running), unix.Lstat(path, &there)); err != nil {
		return "", err
	}
	if running.Dev != there.Dev || running.Ino != there.Ino {
		return "", fmt.Errorf("%q is another program by now", path)
	}
	return path, nil
}
