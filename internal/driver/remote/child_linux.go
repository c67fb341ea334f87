package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/outpost"
)

// Ensure implements Machine.
func (c Child) Ensure(context.Context) error {
	if err := os.MkdirAll(c.Root, 0o700); err != nil {
		return driver.Seal(err, "cannot make the machine's directory")
	}
	return nil
}

// Dial implements Machine. The outpost ends with the stream.
func (c Child) Dial(context.Context) (io.ReadWriteCloser, error) {
	dir := c.Root
	if dir == "" {
		dir = "/"
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil, driver.ErrMachineLost
	}
	conn, err := c.start(dir)
	if err != nil {
		return nil, driver.Joined(driver.ErrUnreachable, fmt.Errorf("cannot start the outpost: %w", err))
	}
	return conn, nil
}

// start starts this very program as an outpost, with one end of a pair of sockets.
func (c Child) start(dir string) (net.Conn, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "outpost"), os.NewFile(uintptr(pair[1]), "outpost")
	defer ours.Close()
	defer theirs.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	log := null
	if c.Root != "" {
		if log, err = os.OpenFile(filepath.Join(c.Root, "outpost.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600); err != nil {
			return nil, err
		}
		defer log.Close()
	}
	conn, err := net.FileConn(ours)
	if err != nil {
		return nil, err
	}
	child, err := os.StartProcess("/proc/self/exe", []string{"litterbox-guest", outpost.Verb}, &os.ProcAttr{
		Dir: dir, Env: []string{}, Files: []*os.File{theirs, theirs, log}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	go func() { _, _ = child.Wait() }() // it ends with the stream; nothing else matters
	return conn, nil
}

func identityOf(info fs.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%d %d %d.%d", st.Dev, st.Ino, st.Ctim.Sec, st.Ctim.Nsec)
}
