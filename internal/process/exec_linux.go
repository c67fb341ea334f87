package process

import (
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Become replaces this process by the program behind fd, which need not have a
// path (execveat(2)). It only returns on failure.
func Become(fd int, argv, env []string) error {
	arguments, err := syscall.SlicePtrFromStrings(argv)
	if err != nil {
		return err
	}
	environment, err := syscall.SlicePtrFromStrings(env)
	if err != nil {
		return err
	}
	empty, err := unix.BytePtrFromString("")
	if err != nil {
		return err
	}
	_, _, errno := unix.RawSyscall6(unix.SYS_EXECVEAT, uintptr(fd), uintptr(unsafe.Pointer(empty)),
		uintptr(unsafe.Pointer(&arguments[0])), uintptr(unsafe.Pointer(&environment[0])), unix.AT_EMPTY_PATH, 0)
	runtime.KeepAlive(arguments)
	runtime.KeepAlive(environment)
	return errno
}
