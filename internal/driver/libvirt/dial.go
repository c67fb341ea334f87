package libvirt

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
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/outpost"
)

// ports is how many links to the domain there can be at a time: those of keepers
// and of commands.
func (m Machine) ports() int {
	if m.Shared {
		return 60
	}
	return 12
}

// Dial implements remote.Machine. It starts nothing: a domain that is off has no
// places.
func (m Machine) Dial(ctx context.Context) (io.ReadWriteCloser, error) {
	h, err := readHandle(m.StateDir)
	if err != nil {
		return nil, err
	}
	if m.Paused() {
		return nil, driver.Joined(driver.ErrUnreachable, errors.New("its machine is paused"))
	}
	ctx, cancel := context.WithTimeout(ctx, dialPatience)
	defer cancel()
	stands := make(chan error, 1)
	go func() { // a domain that stands still says nothing
		select {
		case <-ctx.Done():
			return
		case <-time.After(silence):
		}
		if answer, err := m.ask(ctx, h, OpState); err == nil {
			if err := m.stuck(h, answer); err != nil {
				stands <- err
				cancel()
			}
		}
	}()
	conn, err := m.dial(ctx, h)
	if err == nil {
		return conn, nil
	}
	select {
	case why := <-stands:
		return nil, driver.Joined(driver.ErrUnreachable, why)
	default:
		return nil, err
	}
}

// silence is how long a domain may take to answer before libvirt is asked whether it
// stands still.
const silence = time.Second

// dialPatience is how long a running machine may take to answer.
const dialPatience = 30 * time.Second

// dial begins a link over a free port.
func (m Machine) dial(ctx context.Context, h handle) (net.Conn, error) {
	conn, err := m.port(ctx, h)
	if err != nil {
		return nil, err
	}
	link, err := outpost.DialPort(ctx, conn)
	if err != nil {
		return nil, driver.Joined(driver.ErrUnreachable, fmt.Errorf("the outpost of the domain does not answer: %w", err))
	}
	return link, nil
}

// port connects to a free port. Locks tell which are free: the kernel drops a lock
// with the process that holds it.
func (m Machine) port(ctx context.Context, h handle) (net.Conn, error) {
	for {
		for port := range m.ports() {
			f, err := os.OpenFile(filepath.Join(h.Dir, fmt.Sprintf("%d.lock", port)), os.O_CREATE|os.O_RDWR, 0o600)
			if errors.Is(err, fs.ErrNotExist) {
				return nil, driver.ErrMachineLost
			}
			if err != nil {
				return nil, driver.Joined(driver.ErrUnreachable, err)
			}
			if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
				f.Close()
				continue
			}
			conn, err := connect(ctx, socketOf(h.Dir, port))
			if err != nil {
				return nil, errors.Join(err, f.Close())
			}
			return &held{conn, f}, nil
		}
		select {
		case <-ctx.Done():
			return nil, driver.Joined(driver.ErrUnreachable, fmt.Errorf("all %d ports of the domain are in use", m.ports()))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func connect(ctx context.Context, socket string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	switch {
	case errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ECONNREFUSED):
		return nil, driver.ErrMachineLost // QEMU is not there
	case errors.Is(err, fs.ErrPermission):
		return nil, fault.Wrap(fault.Denied, err, "cannot reach the ports of the domain").WithHint("export LIBVIRT_DEFAULT_URI=qemu:///session")
	case err != nil:
		return nil, driver.Joined(driver.ErrUnreachable, err)
	}
	return conn, nil
}

// held is a connection with the lock of its port.
type held struct {
	net.Conn
	lock *os.File
}

func (h *held) Close() error { return errors.Join(h.Conn.Close(), h.lock.Close()) }
