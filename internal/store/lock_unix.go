//go:build unix

package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// Lock takes the sandbox's lock of that name (flock(2)), waiting until it is
// free or ctx ends. The kernel releases it when the process dies.
func (s *Store) Lock(ctx context.Context, id, name string) (unlock func(), err error) {
	return lockFile(ctx, filepath.Join(s.SandboxDir(id), name+".lock"))
}

func lockFile(ctx context.Context, path string) (func(), error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, unavailable(err, "open the lock %q", path)
	}
	if err := lockOpen(ctx, file); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return func() { _ = file.Close() }, nil // closing releases; nothing was written
}

// lockOpen takes the lock of an open file; closing the file releases it.
func lockOpen(ctx context.Context, file *os.File) error {
	pause := time.Millisecond
	for {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return unavailable(err, "take the lock %q", file.Name())
		}
		select {
		case <-ctx.Done():
			return fault.Wrap(fault.Canceled, ctx.Err(), "cannot take the lock %q", file.Name())
		case <-time.After(pause):
			pause = min(2*pause, 20*time.Millisecond)
		}
	}
}
