package stage

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
)

// live mounts the host's own directory as the workspace, and over it the parts
// that stay read-only. Everything is looked up below the mount just made and no
// link is followed: earlier users of the directory may have left links.
//
// A mount point cannot be renamed, replaced or removed in the mount namespace
// that has it (rename(2), EBUSY). A file's mount point does not survive the host
// replacing the file, so .git is one read-only directory and not a list of
// files.
func (a assembly) live(path string, live *driver.Live) error {
	users, err := a.liveOwner(path)
	if err != nil {
		return err
	}
	if err := a.bindLive(path, path, users, 0, unix.AT_RECURSIVE); err != nil {
		return err
	}
	for _, name := range live.Fixed {
		if err := a.overLive(path, name, users, 0); err != nil {
			return err
		}
	}
	for _, name := range live.ReadOnly {
		if err := a.overLive(path, name, users, unix.MOUNT_ATTR_RDONLY); err != nil {
			return err
		}
	}
	if live.Git != nil {
		if err := a.liveGit(path, live.Git); err != nil {
			return fmt.Errorf("cannot show the git directory: %w", err)
		}
	}
	return nil
}

// liveOwner maps the owner of a directory to the inner user if ids are shifted,
// so that files written inside belong to that owner outside.
func (a assembly) liveOwner(dir string) (*os.File, error) {
	if a.users == nil {
		return nil, nil
	}
	return a.owners.of(dir)
}

// bindLive binds a directory or file of the host at a path inside.
func (a assembly) bindLive(source, name string, users *os.File, attributes uint64, recursive uint) error {
	var st unix.Stat_t
	if err := unix.Lstat(source, &st); err != nil {
		return fmt.Errorf("cannot find %q: %w", source, err)
	}
	return a.onTarget(name, st.Mode&unix.S_IFMT == unix.S_IFDIR, func(at string) error {
		return bindTo(at, unix.AT_FDCWD, source, users, attributes, recursive)
	})
}

// bindTo mounts a clone of what is at a path below a directory.
func bindTo(at string, dir int, source string, users *os.File, attributes uint64, recursive uint) error {
	if users != nil {
		recursive = 0 // mounts below have ids of their own
	}
	tree, err := unix.OpenTree(dir, source, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_SYMLINK_NOFOLLOW|recursive)
	if err != nil {
		return fmt.Errorf("cannot clone the mount of %q: %w", source, err)
	}
	defer unix.Close(tree)
	attr := unix.MountAttr{Attr_set: attributes | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	if users != nil {
		attr.Attr_set |= unix.MOUNT_ATTR_IDMAP
		attr.Userns_fd = uint64(users.Fd())
	}
	if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|recursive, &attr); err != nil {
		return fmt.Errorf("cannot set up the mount of %q (by root, kernel 5.19 and a file system that maps ids are needed): %w", source, err)
	}
	return moveMount(tree, at)
}

// overLive mounts a part of the workspace over itself. Parts that are missing,
// or behind a link, are left out.
func (a assembly) overLive(path, name string, users *os.File, attributes uint64) error {
	top, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(top)
	source, err := unix.Openat2(top, name, &unix.OpenHow{Flags: unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: beneath})
	if missing(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot find %q: %w", name, err)
	}
	defer unix.Close(source)
	var st unix.Stat_t
	if err := unix.Fstat(source, &st); err != nil {
		return err
	}
	if kind := st.Mode & unix.S_IFMT; kind != unix.S_IFDIR && kind != unix.S_IFREG {
		return nil
	}
	inside, err := unix.Open(filepath.Join(a.config.Root, path), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(inside)
	at, err := unix.Openat2(inside, name, &unix.OpenHow{Flags: unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: beneath})
	if missing(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot find %q inside: %w", name, err)
	}
	defer unix.Close(at)
	// By its name again, not by the descriptor: OPEN_TREE_CLONE takes a path of
	// the mount it came from, and a name below an open directory is one.
	return bindTo(fmt.Sprintf("/proc/self/fd/%d", at), top, name, users, attributes, 0)
}

const beneath = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS

func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR)
}

// liveGit shows the host's git directory at driver.LiveCommon and puts the
// sandbox's own in place of .git.
func (a assembly) liveGit(path string, git *driver.LiveGit) error {
	users, err := a.liveOwner(git.Common)
	if err != nil {
		return err
	}
	if err := a.bindLive(git.Common, driver.LiveCommon, users, unix.MOUNT_ATTR_RDONLY, 0); err != nil {
		return err
	}
	for _, name := range driver.LiveWritable() {
		info, err := os.Lstat(filepath.Join(git.Common, name))
		if errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
			continue // a link stays as read-only as its directory
		}
		if err == nil {
			err = a.bindLive(filepath.Join(git.Common, name), filepath.Join(driver.LiveCommon, name), users, 0, 0)
		}
		if err != nil {
			return err
		}
	}
	// The host's reflogs stay as they are: git appends to them by name, and would
	// follow a link put there.
	if info, err := os.Lstat(filepath.Join(git.Common, "logs")); err == nil && info.IsDir() {
		if err := a.writable(git.Logs, filepath.Join(driver.LiveCommon, "logs")); err != nil {
			return err
		}
	}
	if !git.Linked {
		if err := a.writable(git.Own, filepath.Join(path, ".git")); err != nil {
			return err
		}
	} else if err := a.liveLink(path, git); err != nil {
		return err
	}
	return nil
}

// liveLink shows a .git that is a file: it names the sandbox's own directory.
func (a assembly) liveLink(path string, git *driver.LiveGit) error {
	if err := a.writable(git.Own, driver.LiveOwn); err != nil {
		return err
	}
	link := filepath.Join(a.bench, "dot-git")
	if err := os.WriteFile(link, []byte("gitdir: "+driver.LiveOwn+"\n"), 0o644); err != nil {
		return err
	}
	return a.bindReadOnly(link, filepath.Join(path, ".git"), false, 0)
}

// liveWritable lists the directories besides the workspace that Landlock allows
// writing.
func liveWritable(live *driver.Live) []string {
	if live == nil || live.Git == nil {
		return nil
	}
	dirs := []string{driver.LiveOwn, filepath.Join(driver.LiveCommon, "logs")}
	for _, name := range driver.LiveWritable() {
		dirs = append(dirs, filepath.Join(driver.LiveCommon, name))
	}
	return dirs
}

// liveSources lists the directories whose owner is mapped to the inner user.
func liveSources(w driver.Workspace) []string {
	switch {
	case w.Live == nil:
		return nil
	case w.Live.Git == nil:
		return []string{w.Path}
	}
	return []string{w.Path, w.Live.Git.Common}
}
