package netns

import (
	"errors"

	"golang.org/x/sys/unix"
)

// OpenDiag leaves a socket of NETLINK_SOCK_DIAG at diagFD for the guest, before
// the system call filter forbids opening one. It only reports on sockets of the
// sandbox's own network namespace; doing more takes rights that no process
// inside has. The number is above those that the runtime may have taken for
// itself.
func OpenDiag() error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return nil // a kernel without it: the guest reads tables instead
	}
	return errors.Join(unix.Dup3(fd, diagFD, 0), unix.Close(fd))
}

// InheritedDiag returns the socket that OpenDiag left, or 0.
func InheritedDiag() int {
	protocol, err := unix.GetsockoptInt(diagFD, unix.SOL_SOCKET, unix.SO_PROTOCOL)
	if domain, err2 := unix.GetsockoptInt(diagFD, unix.SOL_SOCKET, unix.SO_DOMAIN); errors.Join(err, err2) != nil ||
		domain != unix.AF_NETLINK || protocol != unix.NETLINK_SOCK_DIAG {
		return 0
	}
	unix.CloseOnExec(diagFD)
	return diagFD
}

const diagFD = 59 // the guest's socket of NETLINK_SOCK_DIAG, if the kernel has that
