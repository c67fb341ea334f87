package namespace

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/local"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/process"
)

// pausePatience is how long a place may take to freeze. Only a process that
// waits in the kernel for a device or a remote file system needs more than a
// few milliseconds.
const pausePatience = 10 * time.Second

// Pause implements driver.Driver: by the freezer of the place's control group,
// or by signals if it has none.
func (d Driver) Pause(ctx context.Context, lease driver.Lease, _ string) error {
	place, err := local.Place[handle](lease)
	if err != nil {
		return err
	}
	if !place.lives() {
		return fault.Wrap("", driver.ErrMachineLost, "cannot pause the sandbox")
	}
	ctx, cancel := context.WithTimeout(ctx, pausePatience)
	defer cancel()
	if place.freezes() {
		err = place.Group.Freeze(ctx)
	} else {
		err = stopAll(ctx, lease.StateDir, place.Guest)
	}
	lives := place.lives()
	if err == nil && lives {
		return nil
	}
	// Every frozen process goes on; one that was killed meanwhile only dies then.
	err = errors.Join(err, place.goOn(lease.StateDir))
	switch {
	case !lives:
		return fault.Wrap("", driver.ErrMachineLost, "cannot pause the sandbox")
	case ctx.Err() != nil:
		return fault.Wrap("", driver.Joined(driver.ErrPauseTimeout, err), "cannot pause the sandbox").
			WithHint("some process waits in the kernel, for a device or a remote file system; try again")
	}
	return driver.Seal(err, "cannot pause the sandbox")
}

// Resume implements driver.Driver.
func (d Driver) Resume(_ context.Context, lease driver.Lease) error {
	place, err := local.Place[handle](lease)
	if err != nil {
		return err
	}
	if !process.Alive(place.Guest) {
		return fault.Wrap("", driver.ErrMachineLost, "cannot resume the sandbox")
	}
	lives := place.lives()
	if err := place.goOn(lease.StateDir); err != nil {
		return driver.Seal(err, "cannot resume the sandbox")
	}
	if !lives {
		return fault.Wrap("", driver.ErrMachineLost, "cannot resume the sandbox")
	}
	return nil
}

func (h handle) freezes() bool { return h.Group != nil && h.Group.CanFreeze() }

// goOn undoes either way of pausing, and is harmless when there was none.
func (h handle) goOn(stateDir string) error {
	var err error
	if h.freezes() {
		err = h.Group.Thaw()
	}
	return errors.Join(err, continueAll(stateDir, h.Guest))
}

// paused reports whether the place was told to freeze.
func (h handle) paused(stateDir string) bool {
	if h.freezes() {
		return h.Group.Frozen()
	}
	_, yes := isStopped(stateDir, h.Guest)
	return yes
}

// forgetStop removes the record of an earlier place.
func forgetStop(stateDir string) error {
	err := os.Remove(filepath.Join(stateDir, stopFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
