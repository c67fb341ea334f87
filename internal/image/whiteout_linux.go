package image

import (
	"errors"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// opaqueMark is the attribute of a directory that hides lower layers' entries
// below it, where the overlay is mounted with userxattr.
const opaqueMark = "user.overlay.opaque"

// whiteout hides lower layers' entries under a name. An entry of this very layer
// stays (image-spec, layer.md): a directory then hides only what is below it.
func (e *extraction) whiteout(parent int, name string) error {
	if name == "" || name == "." || name == ".." {
		return fault.New(fault.Denied, "it hides %q", name)
	}
	var st unix.Stat_t
	err := unix.Fstatat(parent, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	switch {
	case err == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR:
		return e.hideIn(parent, name)
	case err == nil:
		return nil
	case !errors.Is(err, unix.ENOENT):
		return err
	}
	// An ordinary user may make this one device (kernel 5.8).
	return unix.Mknodat(parent, name, unix.S_IFCHR, 0)
}

func isWhiteout(st *unix.Stat_t) bool {
	return st.Mode&unix.S_IFMT == unix.S_IFCHR && st.Rdev == 0
}

// hideIn makes a directory opaque.
func (e *extraction) hideIn(parent int, name string) error {
	fd, err := unix.Openat(parent, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return errors.Join(e.hideBelow(fd), unix.Close(fd))
}

func (e *extraction) hideBelow(dir int) error {
	if err := unix.Fsetxattr(dir, opaqueMark, []byte("y"), 0); err != nil {
		return fault.Wrap(fault.Unsupported, err, "cannot mark a directory as opaque on this file system").
			WithHint("export XDG_STATE_HOME=/a/directory/on/ext4-xfs-or-btrfs")
	}
	return nil
}

// remove removes the same layer's earlier entry under a name. A directory is not
// removed: no tool makes a layer that has both.
func remove(parent int, name string) error {
	err := unix.Unlinkat(parent, name, 0)
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil
	case errors.Is(err, unix.EISDIR) || errors.Is(err, unix.EPERM):
		return fault.New(fault.Invalid, "it is a directory of the same layer")
	}
	return err
}

func (e *extraction) chown(parent int, name string) error {
	if !e.owner.Chown {
		return nil
	}
	return unix.Fchownat(parent, name, e.owner.UID, e.owner.GID, unix.AT_SYMLINK_NOFOLLOW)
}

func touch(parent int, name string, at time.Time) error {
	if at.Year() < 1902 || at.Year() > 2400 {
		return nil // beyond what file systems hold
	}
	spec := unix.NsecToTimespec(at.UnixNano())
	if at.Year() > 2261 {
		spec = unix.Timespec{Sec: at.Unix()}
	}
	return unix.UtimesNanoAt(parent, name, []unix.Timespec{spec, spec}, unix.AT_SYMLINK_NOFOLLOW)
}

// setTimes restores the times of directories, which new entries in them have
// changed.
func (e *extraction) setTimes() error {
	for _, name := range slices.Sorted(maps.Keys(e.times)) {
		dir, base := path.Split(name)
		parent, err := e.open(strings.TrimSuffix(dir, "/"))
		if err != nil {
			return sealed(err, "cannot set the time of %q", name)
		}
		if err := touch(parent, base, e.times[name]); err != nil && !errors.Is(err, unix.ENOENT) {
			return sealed(err, "cannot set the time of %q", name)
		}
	}
	return nil
}

// flush writes everything of the file system to the disk (syncfs(2)).
func flush(dir string) error {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return errors.Join(unix.Syncfs(fd), unix.Close(fd))
}

func isOpaque(dir string) bool {
	mark := make([]byte, 1)
	n, err := unix.Lgetxattr(dir, opaqueMark, mark)
	return err == nil && n == 1 && mark[0] == 'y'
}
