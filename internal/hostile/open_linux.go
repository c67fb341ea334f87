package hostile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Directory opens a directory by its path as a place to open others in. Its
// parents are the host's; its last component may be the sandbox's, so links
// and pipes are refused. Opening it needs no permission to read it.
func Directory(path string) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// OpenAt opens a path below a directory, "" for the directory itself, with the
// flags of open(2). It follows no link, leaves neither the directory nor its
// file system, and waits for no writer and no lease (openat2(2), Linux 5.6).
// The error is the kernel's.
func OpenAt(dir *os.File, path string, flags int) (*os.File, error) {
	if path == "" {
		path = "."
	}
	flags |= unix.O_CLOEXEC | unix.O_NOFOLLOW
	if flags&unix.O_PATH == 0 { // openat2(2) refuses these together
		flags |= unix.O_NONBLOCK | unix.O_NOCTTY
	}
	how := unix.OpenHow{
		Flags:   uint64(flags),
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV,
	}
	for tries := 0; ; {
		fd, err := unix.Openat2(int(dir.Fd()), path, &how)
		if err == unix.EINTR {
			continue
		}
		// A rename raced, openat2(2); or a process holds a lease on the file,
		// fcntl(2), which we do not wait for.
		if tries++; err == unix.EAGAIN && tries < 100 {
			continue
		}
		if err != nil {
			return nil, err
		}
		return os.NewFile(uintptr(fd), path), nil
	}
}

// File opens a regular file below a directory for reading. It checks the kind
// on an O_PATH descriptor, so that no device notices.
func File(dir *os.File, path string) (*os.File, error) {
	place, err := OpenAt(dir, path, unix.O_PATH)
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	err = unix.Fstat(int(place.Fd()), &st)
	if err == nil && st.Mode&unix.S_IFMT != unix.S_IFREG {
		err = errNotRegular
	}
	if err != nil {
		return nil, errors.Join(err, place.Close())
	}
	// The very file that was checked, whatever has the name by now.
	fd, err := unix.Open(procPath(place), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err = errors.Join(err, place.Close()); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), path), nil
}

// Root opens a directory below the directory top as an [os.Root], for readers
// that work with one.
func Root(top, path string) (*os.Root, error) {
	dir, err := Directory(top)
	if err != nil {
		return nil, err
	}
	below, err := OpenAt(dir, path, unix.O_PATH|unix.O_DIRECTORY)
	if err = errors.Join(err, dir.Close()); err != nil {
		return nil, err
	}
	// Known to be a directory: os.OpenRoot would wait for the writer of a pipe.
	root, err := os.OpenRoot(procPath(below))
	return root, errors.Join(err, below.Close())
}

// procPath returns a path of the file that a descriptor refers to; links in it
// lead nowhere else.
func procPath(file *os.File) string {
	return filepath.Join("/proc/self/fd", fmt.Sprint(file.Fd()))
}
