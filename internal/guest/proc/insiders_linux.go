package proc

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"golang.org/x/sys/unix"
)

// Insiders lists the processes inside, except the guest: all that /proc shows
// where the guest is PID 1, and its descendants elsewhere, where /proc is the
// host's. A process that loses its parent becomes the guest's child.
func Insiders() ([]int, error) {
	if !IsInit() {
		return Descendants(os.Getpid()), nil
	}
	names, err := ReadNames("/proc")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// Descendants reads proc_tid_children(5); every thread has children of its own.
func Descendants(pid int) []int {
	threads := "/proc/" + strconv.Itoa(pid) + "/task"
	names, err := ReadNames(threads)
	if err != nil {
		return nil // it has just ended
	}
	var all []int
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(threads, name, "children"))
		if err != nil {
			continue
		}
		for field := range bytes.FieldsSeq(data) {
			if child, err := strconv.Atoi(string(field)); err == nil {
				all = append(append(all, child), Descendants(child)...)
			}
		}
	}
	return all
}

// ReadSmall reads at most limit bytes of a regular file.
func ReadSmall(path string, limit int64) ([]byte, error) {
	f, _, err := OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit))
}

// OpenRegular opens a file to read and refuses everything else: a FIFO would
// wait for a writer, a device may do anything.
func OpenRegular(path string) (*os.File, fs.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case info.IsDir():
		err = unix.EISDIR
	case !info.Mode().IsRegular():
		err = fault.New(fault.Invalid, "not a regular file")
	default:
		return f, info, nil
	}
	f.Close()
	return nil, nil, err
}

// IsInit reports whether this process is PID 1 of its namespace, and so may
// signal "everybody" without reaching beyond the sandbox.
func IsInit() bool { return os.Getpid() == 1 }

func ReadNames(dir string) ([]string, error) {
	// O_DIRECTORY: a pipe may be there, and opening that never returns.
	d, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.Readdirnames(-1)
}
