//go:build unix

package store

import (
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// lockOpen takes the lock of an open file; closing the file releases it.
func lockOpen(ctx context.Context, file *os.File) error {
	return lockWith(ctx, file.Name(), func() error { return unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) })
}

// lockWith calls try, which does not wait, until it succeeds or ctx ends.
func lockWith(ctx context.Context, what string, try func() error) error {
	pause := time.Millisecond
	for {
		err := try()
		if err == nil {
			return nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EACCES) && !errors.Is(err, unix.EINTR) {
			return unavailable(err, "take the lock %q", what)
		}
		select {
		case <-ctx.Done():
			return fault.Wrap(fault.Canceled, ctx.Err(), "cannot take the lock %q", what)
		case <-time.After(pause):
			pause = min(2*pause, 20*time.Millisecond)
		}
	}
}
