package namespace

import (
	"context"
	"errors"
	"net"
	"time"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/local"
	"github.com/litterbox-sandbox/litterbox/internal/driver/namespace/cgroup"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/process"
)

// Attach implements driver.Driver.
func (d Driver) Attach(ctx context.Context, lease driver.Lease) error {
	// A paused guest would not accept the connection, and its queue is finite.
	if place, err := local.Place[handle](lease); err == nil && place.lives() && place.paused(lease.StateDir) {
		return nil
	}
	conn, err := d.Dial(ctx, lease)
	if err != nil {
		return err
	}
	return conn.Close()
}

// Dial implements driver.Driver: each call is a new connection to the guest's
// socket.
func (d Driver) Dial(ctx context.Context, lease driver.Lease) (net.Conn, error) {
	place, err := local.Place[handle](lease)
	if err != nil {
		return nil, err
	}
	if !place.lives() {
		return nil, fault.Wrap("", driver.ErrMachineLost, "cannot reach the sandbox")
	}
	conn, err := local.Dial(ctx, lease.StateDir)
	if err != nil && !place.lives() { // it has just ended
		return nil, fault.Wrap("", driver.ErrMachineLost, "cannot reach the sandbox")
	}
	if err != nil {
		return nil, fault.Wrap("", driver.Joined(driver.ErrUnreachable, err), "cannot reach the sandbox")
	}
	return conn, nil
}

// destroyGrace is how long a requested end of the guest may take before it is
// killed; the guest itself allows its processes less.
const destroyGrace = 15 * time.Second

// Destroy implements driver.Driver. A caller that wants an orderly end has
// asked the guest over the wire (OpShutdown) before; without force this waits
// for it.
func (d Driver) Destroy(ctx context.Context, lease driver.Lease, force bool) error {
	if len(lease.Handle) == 0 {
		return d.sweep(lease)
	}
	place, err := local.Place[handle](lease)
	if err != nil {
		return err
	}
	if err := place.end(ctx, lease.StateDir, force); err != nil {
		return err
	}
	return place.clear(lease.StateDir)
}

// sweep removes the remains of a start that never reported its guest. That
// guest has ended: it does when no process waits for it.
func (Driver) sweep(lease driver.Lease) error {
	if err := cgroup.Sweep(cgroup.Find(), groupName(lease.SandboxID)); err != nil {
		return driver.Seal(err, "cannot clear away a start that was cut off")
	}
	return nil
}

// clear removes everything that outlives a guest. A control group that stays
// busy is left: the next start, or litterbox doctor --fix, removes it.
func (h handle) clear(stateDir string) error {
	err := h.Group.Remove()
	if errors.Is(err, cgroup.ErrBusy) {
		err = nil
	}
	if err := errors.Join(err, forgetStop(stateDir)); err != nil {
		return driver.Seal(err, "cannot clear away what the sandbox has left")
	}
	return nil
}

// end waits for the guest's end, or kills it: PID 1 of its pid namespace, with
// which the kernel kills the rest.
func (h handle) end(ctx context.Context, stateDir string, force bool) error {
	if !process.Alive(h.Guest) {
		return nil
	}
	pidfd, err := unix.PidfdOpen(h.Guest.PID, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fault.Wrap("", driver.Joined(driver.ErrUnreachable, err), "cannot end the sandbox")
	}
	defer unix.Close(pidfd)
	if !process.Alive(h.Guest) {
		return nil // the pid was reused between the two checks
	}
	if !force {
		// A paused process cannot obey.
		if err := h.goOn(stateDir); err != nil {
			return driver.Seal(err, "cannot end the sandbox")
		}
		if waitPidfd(ctx, pidfd, destroyGrace) {
			return nil
		}
	}
	if err := unix.PidfdSendSignal(pidfd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fault.Wrap("", driver.Joined(driver.ErrUnreachable, err), "cannot end the sandbox")
	}
	// A process frozen in a version 1 group dies only when it is thawed; by now
	// every one dies before it does anything else.
	if h.freezes() {
		if err := h.Group.Thaw(); err != nil {
			return driver.Seal(err, "cannot end the sandbox")
		}
	}
	if !waitPidfd(context.WithoutCancel(ctx), pidfd, destroyGrace) {
		return fault.New(fault.Timeout, "cannot end the sandbox: process %d does not die", h.Guest.PID)
	}
	return nil
}

// waitPidfd waits until the process behind fd is gone.
func waitPidfd(ctx context.Context, fd int, most time.Duration) bool {
	deadline := time.Now().Add(most)
	for {
		left := time.Until(deadline)
		if left <= 0 || ctx.Err() != nil {
			return false
		}
		step := min(left, 100*time.Millisecond)
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(step.Milliseconds())+1)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return false
		}
		if n > 0 {
			return true
		}
	}
}

// Recover implements driver.Driver. The namespaces and mounts die with their
// last process, so a crash can only leave a socket without a listener and an
// empty control group.
func (d Driver) Recover(ctx context.Context, lease driver.Lease) ([]string, error) {
	if len(lease.Handle) == 0 {
		return d.endUnrecorded(lease)
	}
	place, err := local.Place[handle](lease)
	if err != nil {
		return nil, err
	}
	if place.lives() {
		// Failing to reach it from this process says nothing about the place: this
		// process may lack descriptors.
		if err := d.Attach(ctx, lease); !errors.Is(err, driver.ErrMachineLost) {
			return nil, err
		}
	}
	if process.Alive(place.Guest) { // killed, and has not died yet
		return nil, d.Destroy(ctx, lease, true)
	}
	if err := local.Forget(lease.StateDir); err != nil {
		return nil, err
	}
	return nil, place.clear(lease.StateDir)
}
