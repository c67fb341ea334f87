package overlay

import (
	"errors"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// setGroup carries out a chmod with the set-group-ID bit, or one of its like,
// and returns its error. git wants that bit on the directories of a shared
// repository, and on a directory it only says which group new files belong to.
// No set-group-ID program may get into files that the host keeps. So the kernel
// asks here (Watched in internal/driver/seccomp).
//
// The guest checks the very file that it changes, held open, and a directory
// never turns into a file. The call itself never goes on: its arguments could
// name another file by then. The guest has no right that the caller lacks: the
// same user, no capability, the same mounts.
func (r *renamer) setGroup(n *notification) (errno unix.Errno) {
	defer func() {
		if recover() != nil {
			errno = unix.EPERM // a defect here must not stop every rename inside
		}
	}()
	c, ok := attributeCallOf(n)
	switch {
	case !ok:
		return unix.EFAULT
	case c.touch || c.mode&unix.S_ISUID != 0 && !r.install || !r.sameRoot(n.pid):
		return unix.EPERM
	case c.flags&^(unix.AT_SYMLINK_NOFOLLOW|unix.AT_EMPTY_PATH) != 0:
		return unix.EINVAL
	}
	file, errno := c.open(n.pid)
	if errno != 0 {
		return errno
	}
	defer unix.Close(file)
	if !r.valid(n) {
		return unix.EINTR // the caller no longer waits
	}
	if r.install {
		return plainMode(file, c.mode)
	}
	// A path like /proc/self/fd/5 is the guest's own here. Its open files are on
	// none of these mounts, or within the caller's reach as well.
	if mount, directory := mountOf(file); !directory || !slices.Contains(r.mounts, mount) {
		return unix.EPERM
	}
	err := unix.Fchmodat(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(file), c.mode&0o7777, 0)
	errors.As(err, &errno)
	return errno
}

// plainMode sets the mode of an open file, without the bits that make a program
// run as its owner or group. On a directory the set-group-ID bit stays.
func plainMode(file int, mode uint32) (errno unix.Errno) {
	var st unix.Stat_t
	if err := unix.Fstat(file, &st); err != nil {
		return unix.EIO
	}
	switch mode &= 0o7777 &^ unix.S_ISUID; st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
	case unix.S_IFLNK:
		return unix.EOPNOTSUPP // links have no mode of their own
	default:
		mode &^= unix.S_ISGID
	}
	err := unix.Fchmodat(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(file), mode, 0)
	errors.As(err, &errno)
	return errno
}

// mountOf is the mount that an open directory lies on (STATX_MNT_ID, Linux
// 5.8); false means not a directory, or an older kernel.
func mountOf(file int) (uint64, bool) {
	var st unix.Statx_t
	const wanted = unix.STATX_TYPE | unix.STATX_MNT_ID
	if err := unix.Statx(file, "", unix.AT_EMPTY_PATH, wanted, &st); err != nil || st.Mask&wanted != wanted {
		return 0, false
	}
	return st.Mnt_id, st.Mode&unix.S_IFMT == unix.S_IFDIR
}

// mountsOf returns the mounts that directories lie on.
func mountsOf(paths ...string) []uint64 {
	var mounts []uint64
	for _, path := range paths {
		dir, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		if mount, ok := mountOf(dir); ok {
			mounts = append(mounts, mount)
		}
		unix.Close(dir)
	}
	return mounts
}
