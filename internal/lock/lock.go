//go:build unix

// Package lock takes locks on files, which exclude other processes and other opens
// of this one. The kernel releases them when the file is closed or its process
// dies. A wait ends with its context, and then says which process holds the lock.
package lock

import (
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// File takes the lock of a whole open file (flock(2)), waiting until it is free
// or ctx ends: then it fails with fault.Canceled. One attempt is always made.
// Closing the file releases the lock.
func File(ctx context.Context, file *os.File) error {
	return wait(ctx, file, file.Name(), anywhere, func() error { return unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) })
}

// anywhere is the position of a lock of a whole file.
const anywhere = -1

// nameable is how long a wait must last to name the lock's holder at its end. Naming
// it means looking at all of the user's processes, which a mere attempt need not do.
const nameable = 50 * time.Millisecond

// wait calls try, which does not wait, until it succeeds or ctx ends. start is
// where in the file the lock begins, name its name.
func wait(ctx context.Context, file *os.File, name string, start int64, try func() error) error {
	began, pause := time.Now(), time.Millisecond
	for {
		err := try()
		if err == nil {
			return nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EACCES) && !errors.Is(err, unix.EINTR) {
			return fault.Wrap(fault.Unavailable, err, "cannot take the lock %q", name)
		}
		select {
		case <-ctx.Done():
			held := ""
			if time.Since(began) >= nameable {
				held = By(file, start)
			}
			return fault.Wrap(fault.Canceled, ctx.Err(), "cannot take the lock %q%s", name, held)
		case <-time.After(pause):
			pause = min(2*pause, 20*time.Millisecond)
		}
	}
}
