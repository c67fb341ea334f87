package process

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Refused lists which of some system calls this process may not make: a filter
// older than they are refuses them on a kernel that has them. Each is called in
// vain, with arguments that the kernel checks before it checks rights, and
// refuses with another error.
func Refused(calls ...string) []string {
	var refused []string
	for _, name := range calls {
		var errno unix.Errno
		switch name {
		case "openat2": // the size of its argument
			_, _, errno = unix.RawSyscall6(unix.SYS_OPENAT2, 0, 0, 0, 0, 0, 0)
		case "memfd_create": // the flags
			_, _, errno = unix.RawSyscall(unix.SYS_MEMFD_CREATE, 0, ^uintptr(0), 0)
		case "pidfd_open": // the flags
			_, _, errno = unix.RawSyscall(unix.SYS_PIDFD_OPEN, 0, ^uintptr(0), 0)
		case "open_tree": // the flags
			_, _, errno = unix.RawSyscall(unix.SYS_OPEN_TREE, 0, 0, ^uintptr(0))
		case "mount_setattr": // the flags
			_, _, errno = unix.RawSyscall6(unix.SYS_MOUNT_SETATTR, 0, 0, ^uintptr(0), 0, 0, 0)
		default:
			errno = unix.ENOSYS
		}
		if errors.Is(errno, unix.ENOSYS) || errors.Is(errno, unix.EPERM) {
			refused = append(refused, name)
		}
	}
	return refused
}
