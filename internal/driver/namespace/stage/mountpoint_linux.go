package stage

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// target opens the mount point name below root, makes whatever is missing, and
// never follows a link: the sandbox may have put links into its persistent
// directories before this start (the class of runc's CVE-2021-30465). An
// obstacle is moved aside, not deleted.
//
// The result is an O_PATH descriptor; mount on "/proc/self/fd/N".
func target(root, name string, dir bool, uid, gid int) (*os.File, error) {
	fd, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot open the new root: %w", err)
	}
	parts := strings.Split(strings.Trim(path.Clean("/"+name), "/"), "/")
	for i, part := range parts {
		wantDir := dir || i < len(parts)-1
		next, err := step(fd, part, wantDir, uid, gid)
		closeErr := unix.Close(fd)
		if err = errors.Join(err, closeErr); err != nil {
			return nil, fmt.Errorf("cannot make the mount point %q: %w", name, err)
		}
		fd = next
	}
	return os.NewFile(uintptr(fd), name), nil
}

func step(parent int, name string, dir bool, uid, gid int) (int, error) {
	for range 3 {
		fd, err := unix.Openat(parent, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if errors.Is(err, unix.ENOENT) {
			if err := create(parent, name, dir, uid, gid); err != nil {
				return -1, err
			}
			continue
		}
		if err != nil {
			return -1, err
		}
		var stat unix.Stat_t
		if err := unix.Fstat(fd, &stat); err != nil {
			return -1, errors.Join(err, unix.Close(fd))
		}
		kind := stat.Mode & unix.S_IFMT
		if dir && kind == unix.S_IFDIR || !dir && kind != unix.S_IFDIR && kind != unix.S_IFLNK {
			return fd, nil
		}
		if err := unix.Close(fd); err != nil {
			return -1, err
		}
		if err := moveAside(parent, name); err != nil {
			return -1, err
		}
	}
	return -1, errors.New("it keeps changing")
}

func create(parent int, name string, dir bool, uid, gid int) error {
	if dir {
		if err := unix.Mkdirat(parent, name, 0o755); err != nil {
			return err
		}
	} else {
		err := unforked(func() error {
			fd, err := unix.Openat(parent, name, unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_WRONLY, 0o644)
			if err != nil {
				return err
			}
			return unix.Close(fd)
		})
		if err != nil {
			return err
		}
	}
	if err := unix.Fchownat(parent, name, uid, gid, unix.AT_SYMLINK_NOFOLLOW); err != nil && !errors.Is(err, unix.EPERM) {
		return err
	}
	return nil
}

func moveAside(parent int, name string) error {
	for n := 1; n < 1000; n++ {
		err := unix.Renameat2(parent, name, parent, fmt.Sprintf("%s.moved-%d", name, n), unix.RENAME_NOREPLACE)
		if !errors.Is(err, unix.EEXIST) {
			return err
		}
	}
	return errors.New("too many files were moved aside")
}

func fdPath(file *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", file.Fd()) }

// onTarget makes the mount point name and mounts there by way of mount.
func (a assembly) onTarget(name string, dir bool, mount func(at string) error) error {
	uid, gid := a.config.owner()
	file, err := target(a.config.Root, name, dir, uid, gid)
	if err != nil {
		return err
	}
	err = mount(fdPath(file))
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("cannot mount %q: %w", name, err)
	}
	return nil
}
