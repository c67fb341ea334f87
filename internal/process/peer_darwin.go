package process

import (
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// SameUser reports whether the process at the other end of a Unix socket was one of
// this user when it connected, or listened (LOCAL_PEERCRED, unix(4)).
func SameUser(conn *net.UnixConn) bool {
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	same := false
	err = raw.Control(func(fd uintptr) {
		peer, err := unix.GetsockoptXucred(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
		same = err == nil && int(peer.Uid) == os.Geteuid()
	})
	return err == nil && same
}
