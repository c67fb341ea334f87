package frozen

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// lock takes the lock of a store; the end of the process releases it.
func lock(store string) (unlock func(), err error) {
	path := filepath.Join(store, lockName)
	err = os.MkdirAll(store, 0o700)
	var f *os.File
	if err == nil {
		f, err = os.OpenFile(path, os.O_CREATE|os.O_RDWR|syscall.O_CLOEXEC, 0o600)
	}
	if err == nil {
		for {
			if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX); !errors.Is(err, syscall.EINTR) {
				break
			}
		}
	}
	if err != nil {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
		return nil, fault.Wrap(fault.Unavailable, err, "cannot lock %q", path)
	}
	return func() { _ = f.Close() }, nil // the lock goes with the descriptor
}
