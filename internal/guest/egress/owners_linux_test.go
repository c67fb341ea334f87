package egress_test

import (
	"fmt"
	"net"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/guest/egress"
	"golang.org/x/sys/unix"
)

// The kernel names the socket of a connection, among many.
func TestOwners(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		listener, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
		if err != nil {
			t.Skip("this kernel has no sock_diag:", err)
		}
		defer unix.Close(fd)
		for range 40 {
			conn, err := net.Dial("tcp", listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			local, remote := conn.LocalAddr().(*net.TCPAddr), conn.RemoteAddr().(*net.TCPAddr).AddrPort()
			raw, err := conn.(*net.TCPConn).SyscallConn()
			if err != nil {
				t.Fatal(err)
			}
			var stat unix.Stat_t
			if err := raw.Control(func(fd uintptr) { err = unix.Fstat(int(fd), &stat) }); err != nil {
				t.Fatal(err)
			}
			want := fmt.Sprint(stat.Ino)
			if got := egress.InodeByDiag(fd, local.AddrPort(), remote); got != want {
				t.Errorf("sock_diag says that %s is socket %q, want %q", local, got, want)
			}
		}
		if got := egress.InodeByDiag(fd, listener.Addr().(*net.TCPAddr).AddrPort(), listener.Addr().(*net.TCPAddr).AddrPort()); got != "" {
			t.Errorf("a connection that does not exist is socket %q", got)
		}
	}
}
