package local

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/process"
)

// Socket is the guest's socket in the directory of its sandbox.
const Socket = "guest.sock"

// Listen opens the socket on the host's side. The guest inherits it, so its path
// need not exist inside, and a new keeper finds it after the first died.
func Listen(stateDir string) (*os.File, error) {
	if err := remove(stateDir); err != nil {
		return nil, err
	}
	var file *os.File
	err := process.ShortPath(stateDir, func(dir string) error {
		listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, Socket), Net: "unix"})
		if err != nil {
			return err
		}
		listener.SetUnlinkOnClose(false)
		file, err = listener.File()
		return errors.Join(err, listener.Close())
	})
	return file, err
}

// Dial connects to the guest. Its errors are the kernel's.
func Dial(ctx context.Context, stateDir string) (net.Conn, error) {
	var conn net.Conn
	err := process.ShortPath(stateDir, func(dir string) (err error) {
		var dialer net.Dialer
		conn, err = dialer.DialContext(ctx, "unix", filepath.Join(dir, Socket))
		return err
	})
	return conn, err
}

// Answers reports whether a guest serves on the sandbox's socket: two guests on
// one upper directory would spoil it. No socket, or one without a listener,
// means no; being unable to ask, for lack of descriptors, is an error.
func Answers(ctx context.Context, stateDir string) (bool, error) {
	conn, err := Dial(ctx, stateDir)
	switch {
	case err == nil:
		return true, conn.Close()
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ECONNREFUSED):
		return false, nil
	case errors.Is(err, unix.EAGAIN): // its queue is full
		return true, nil
	}
	return false, err
}

// Forget removes the socket of a guest that has ended.
func Forget(stateDir string) error {
	if err := remove(stateDir); err != nil {
		return driver.Seal(err, "cannot remove a stale socket")
	}
	return nil
}

func remove(stateDir string) error {
	err := os.Remove(filepath.Join(stateDir, Socket))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
