package process

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Start is os.StartProcess for an open program, no matter which descriptors it
// and the files in attr have. It leaves the program open.
func Start(program *os.File, argv []string, attr *os.ProcAttr) (*os.Process, error) {
	moved, err := behind(program.Fd(), program.Name(), attr.Files)
	if err != nil {
		return nil, err
	}
	defer moved.Close() // the child has the program by then
	return os.StartProcess(ExecPath(moved), argv, attr)
}

// StartPath is os.StartProcess for a path that may be one of [ExecPath].
func StartPath(path string, argv []string, attr *os.ProcAttr) (*os.Process, error) {
	number, open := strings.CutPrefix(path, descriptors)
	fd, err := strconv.Atoi(number)
	if !open || err != nil {
		return os.StartProcess(path, argv, attr)
	}
	moved, err := behind(uintptr(fd), path, attr.Files)
	if err != nil {
		return nil, err
	}
	defer moved.Close()
	return os.StartProcess(ExecPath(moved), argv, attr)
}

// behind gives an open program a second descriptor, which no child that is given
// these files overwrites: package syscall has a child move its own pipe, and the
// given files, to the numbers after the largest (forkAndExecInChild1). It is the
// next that serves: a number from 64 on would enlarge the table of descriptors, for
// which the kernel waits until every processor has passed a quiet state
// (expand_fdtable in fs/file.c).
func behind(program uintptr, name string, given []*os.File) (*os.File, error) {
	last := uintptr(0)
	for _, file := range given {
		last = max(last, file.Fd())
	}
	fd, err := unix.FcntlInt(program, unix.F_DUPFD_CLOEXEC, int(last)+len(given)+2)
	if err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	return os.NewFile(uintptr(fd), name), nil
}
