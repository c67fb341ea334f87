package stage

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
)

// shared binds a directory of the host that can be written inside, without
// set-user-id or devices. No part of its path may be a symbolic link: another
// sandbox that can write above it could make it lead anywhere. Under root the
// owner of the directory is the inner user, and mounts below the directory stay
// out, because they may have other owners.
func (a assembly) shared(mount driver.Mount) error {
	source, err := unix.Openat2(unix.AT_FDCWD, mount.Source, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return fmt.Errorf("cannot share %q: %w", mount.Source, err)
	}
	defer unix.Close(source)
	users, err := a.liveOwner(mount.Source)
	if err != nil {
		return err
	}
	var recursive uint = unix.AT_RECURSIVE
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	if users != nil {
		recursive = 0
		attr.Attr_set |= unix.MOUNT_ATTR_IDMAP
		attr.Userns_fd = uint64(users.Fd())
	}
	return a.onTarget(mount.Target, true, func(at string) error {
		tree, err := unix.OpenTree(source, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH|recursive)
		if err != nil {
			return fmt.Errorf("cannot clone the mount of %q: %w", mount.Source, err)
		}
		defer unix.Close(tree)
		if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|recursive, &attr); err != nil {
			return fmt.Errorf("cannot share %q (by root, kernel 5.19 and a file system that maps ids are needed): %w", mount.Source, err)
		}
		return moveMount(tree, at)
	})
}

// sharedSources lists the directories whose owner is mapped to the inner user.
func sharedSources(mounts []driver.Mount) []string {
	var sources []string
	for _, mount := range mounts {
		if mount.Writable {
			sources = append(sources, mount.Source)
		}
	}
	return sources
}
