package process

import (
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// SameUser reports whether the process at the other end of a Unix socket was one of
// this user when it connected, or listened (SO_PEERCRED, unix(7)).
func SameUser(conn *net.UnixConn) bool {
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	same := false
	err = raw.Control(func(fd uintptr) {
		peer, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		same = err == nil && int(peer.Uid) == os.Geteuid()
	})
	return err == nil && same
}
