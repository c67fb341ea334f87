package process

import (
	"os"

	"golang.org/x/sys/unix"
)

// Start is os.StartProcess for an open program, no matter which descriptors it
// and the files in attr have. It leaves the program open.
func Start(program *os.File, argv []string, attr *os.ProcAttr) (*os.Process, error) {
	moved, err := behind(program, attr.Files)
	if err != nil {
		return nil, err
	}
	defer moved.Close() // the child has the program by then
	return os.StartProcess(ExecPath(moved), argv, attr)
}

// behind gives an open program a second descriptor, which no child that is given
// these files overwrites: package syscall has a child move its own pipe, and the
// given files, to the numbers after the largest (forkAndExecInChild1).
func behind(program *os.File, given []*os.File) (*os.File, error) {
	last := uintptr(0)
	for _, file := range given {
		last = max(last, file.Fd())
	}
	fd, err := unix.FcntlInt(program.Fd(), unix.F_DUPFD_CLOEXEC, int(last)+len(given)+2)
	if err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	return os.NewFile(uintptr(fd), program.Name()), nil
}
