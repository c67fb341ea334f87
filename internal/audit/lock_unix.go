//go:build unix

package audit

import (
	"context"
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/lock"
)

// take takes the lock of the log, waiting for it as long as ctx lasts: its holder
// writes a few lines and is done.
func take(ctx context.Context, path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	if err := lock.File(ctx, file); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return func() { _ = file.Close() }, nil // closing releases; nothing was written
}

// waited is the kind of an error of writing the log: the wait for it can be
// canceled.
func waited(err error) fault.Kind {
	if fault.KindOf(err) == fault.Canceled {
		return fault.Canceled
	}
	return fault.Unavailable
}
