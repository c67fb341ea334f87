package lock

import (
	"context"
	"os"

	"golang.org/x/sys/unix"
)

// Byte takes the lock of one byte of an open file (open file description locks,
// fcntl(2), Linux 3.15), otherwise as File does; many locks can share a file.
// name is the lock's name in errors.
func Byte(ctx context.Context, file *os.File, name string, at int64) error {
	one := unix.Flock_t{Type: unix.F_WRLCK, Start: at, Len: 1}
	return wait(ctx, file, name, at, func() error { return unix.FcntlFlock(file.Fd(), unix.F_OFD_SETLK, &one) })
}
