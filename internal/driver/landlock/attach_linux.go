package landlock

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/local"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/process"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// Attach implements driver.Driver.
func (d Driver) Attach(ctx context.Context, lease driver.Lease) error {
	conn, err := d.Dial(ctx, lease)
	if err != nil {
		return err
	}
	return conn.Close()
}

// Dial implements driver.Driver.
func (d Driver) Dial(ctx context.Context, lease driver.Lease) (net.Conn, error) {
	place, err := local.Place[handle](lease)
	if err != nil {
		return nil, err
	}
	lost := fault.Wrap("", driver.ErrMachineLost, "cannot reach the sandbox")
	if !process.Alive(place.Warden) {
		return nil, lost
	}
	conn, err := local.Dial(ctx, lease.StateDir)
	if errors.Is(err, unix.ECONNREFUSED) {
		return nil, lost // the guest has ended, and the warden is about to
	}
	if err != nil {
		return nil, fault.Wrap("", driver.Joined(driver.ErrUnreachable, err), "cannot reach the sandbox")
	}
	return conn, nil
}

// patience is how long a requested end may take, and then a forced one.
const patience = 15 * time.Second

// Destroy implements driver.Driver.
func (d Driver) Destroy(ctx context.Context, lease driver.Lease, force bool) error {
	if len(lease.Handle) > 0 {
		place, err := local.Place[handle](lease)
		if err != nil {
			return err
		}
		if !force {
			awaitEnd(ctx, place.Warden, patience)
		}
		if err := endWarden(ctx, place.Warden); err != nil {
			return err
		}
	}
	return d.clear(ctx, lease)
}

// endWarden tells the warden to end its place, and kills it if it does not.
func endWarden(ctx context.Context, warden sandbox.Process) error {
	for _, signal := range []unix.Signal{unix.SIGTERM, unix.SIGKILL} {
		if !process.Alive(warden) {
			return nil
		}
		pidfd, err := unix.PidfdOpen(warden.PID, 0)
		if errors.Is(err, unix.ESRCH) {
			return nil
		}
		if err != nil {
			return fault.Wrap("", driver.Joined(driver.ErrUnreachable, err), "cannot end the sandbox")
		}
		if process.Alive(warden) { // the number may have been reused between the two looks
			_ = unix.PidfdSendSignal(pidfd, signal, nil, 0) // gone meanwhile
		}
		_ = unix.Close(pidfd)
		if awaitEnd(context.WithoutCancel(ctx), warden, patience) {
			return nil
		}
	}
	return fault.New(fault.Timeout, "cannot end the sandbox: process %d does not die", warden.PID)
}

func awaitEnd(ctx context.Context, warden sandbox.Process, most time.Duration) bool {
	deadline := time.Now().Add(most)
	for process.Alive(warden) {
		if ctx.Err() != nil || time.Now().After(deadline) {
			return false
		}
		time.Sleep(2 * time.Millisecond)
	}
	return true
}

// clear ends the remains of a warden that was itself killed. Its guest died
// with it, and so did their direct children; further ones are known by their
// HOME or TMPDIR, unless they changed both.
func (d Driver) clear(ctx context.Context, lease driver.Lease) error {
	deadline := time.Now().Add(patience)
	for {
		left := marked(lease.StateDir)
		if len(left) == 0 {
			serves, err := local.Answers(ctx, lease.StateDir)
			if err != nil {
				return driver.Seal(err, "cannot find out whether the sandbox has ended")
			}
			if !serves {
				break
			}
		}
		if time.Now().After(deadline) {
			return fault.New(fault.Timeout, "cannot end the sandbox: some of its processes do not die")
		}
		for _, pid := range left {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		time.Sleep(2 * time.Millisecond)
	}
	return local.Forget(lease.StateDir)
}

// marked lists the living processes whose environment says that they belong to
// the place.
func marked(stateDir string) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	marks := [][]byte{
		[]byte("HOME=" + filepath.Join(stateDir, "home") + "\x00"),
		[]byte("TMPDIR=" + filepath.Join(stateDir, "tmp") + "\x00"),
	}
	var found []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		// Empty for a zombie, refused for another user's.
		environ, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "environ"))
		if err == nil && slices.ContainsFunc(marks, func(mark []byte) bool { return bytes.Contains(environ, mark) }) {
			found = append(found, pid)
		}
	}
	return found
}

// Recover implements driver.Driver.
func (d Driver) Recover(ctx context.Context, lease driver.Lease) ([]string, error) {
	if len(lease.Handle) > 0 {
		// Failing to reach it from this process says nothing about the place.
		if err := d.Attach(ctx, lease); !errors.Is(err, driver.ErrMachineLost) {
			return nil, err
		}
	}
	return nil, d.Destroy(ctx, lease, true)
}
