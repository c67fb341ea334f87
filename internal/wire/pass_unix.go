//go:build unix

package wire

import (
	"errors"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// PassHello opens a connection to the guest's socket that carries another one,
// which a host on the same kernel waits at. It comes with the descriptor, and is as
// long as the other hellos.
const PassHello = "LBPS\x01"

// PassOn gives conn to the guest at the other end of to, as if the guest had
// accepted it. The caller closes both of its own.
func PassOn(to, conn *net.UnixConn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var sendErr error
	err = raw.Control(func(fd uintptr) {
		_, _, sendErr = to.WriteMsgUnix([]byte(PassHello), unix.UnixRights(int(fd)), nil)
	})
	return errors.Join(err, sendErr)
}

// TakePassed receives the connection that comes with PassHello, as the guest. It
// takes the place of conn, which is closed.
func TakePassed(conn *net.UnixConn) (*net.UnixConn, error) {
	defer conn.Close()
	d := &descriptors{conn: conn}
	defer func() {
		for _, file := range d.files {
			_ = file.Close() // a nil one is refused there; nothing was written to it
		}
	}()
	if err := d.fill(); err != nil {
		return nil, err
	}
	if string(d.buffer) != PassHello || len(d.files) != 1 || d.files[0] == nil {
		return nil, fault.New(fault.Unavailable, "a connection was announced and did not come")
	}
	return unixConn(d.files[0])
}

// unixConn makes a connection of a descriptor, which stays open.
func unixConn(file *os.File) (*net.UnixConn, error) {
	conn, err := net.FileConn(file)
	if err != nil {
		return nil, err
	}
	passed, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, errors.Join(fault.New(fault.Unavailable, "a descriptor is not a Unix socket"), conn.Close())
	}
	return passed, nil
}
