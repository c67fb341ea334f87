package process_test

import (
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/process"
)

// accepted returns this process's end of a connection that dial makes to path.
func accepted(t *testing.T, dial func(path string)) *net.UnixConn {
	t.Helper()
	path := filepath.Join(t.TempDir(), "socket")
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	dial(path)
	conn, err := listener.AcceptUnix()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func TestSameUser(t *testing.T) {
	mine := accepted(t, func(path string) {
		conn, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		if !process.SameUser(conn.(*net.UnixConn)) {
			t.Error("the listener is this user's, and counts as another's")
		}
	})
	if !process.SameUser(mine) {
		t.Error("this process counts as another user's")
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can be another user")
	}
	const other = 65534
	theirs := accepted(t, func(path string) {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Close(fd) })
		done := make(chan error)
		go func() {
			runtime.LockOSThread() // never unlocked: the thread ends with its user
			// Not unix.Setresuid, which is for all threads. CAP_DAC_OVERRIDE goes with root,
			// so the capabilities stay: only the name is another one.
			_, _, errno := unix.RawSyscall(unix.SYS_PRCTL, unix.PR_SET_KEEPCAPS, 1, 0)
			if errno == 0 {
				_, _, errno = unix.RawSyscall(unix.SYS_SETRESUID, other, other, other)
			}
			if errno != 0 {
				done <- errno
				return
			}
			header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
			var data [2]unix.CapUserData
			err := unix.Capget(&header, &data[0])
			if err == nil {
				data[0].Effective, data[1].Effective = data[0].Permitted, data[1].Permitted
				err = unix.Capset(&header, &data[0])
			}
			if err == nil {
				err = unix.Connect(fd, &unix.SockaddrUnix{Name: path})
			}
			done <- err
		}()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	})
	if process.SameUser(theirs) {
		t.Error("another user counts as this one")
	}
}
