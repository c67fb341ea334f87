package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/layer"
)

// looksDir is the directory, beside a sandbox's record, in which the user's own
// programs look at copies of its files.
const looksDir = "looks"

// scratch makes a directory for copies of files at which a program of the user's
// looks, and done removes it. Leftovers of a killed litterbox go first: a directory
// is locked as long as the process that made it lives.
func (p *place) scratch(ctx context.Context) (dir string, done func() error, err error) {
	root := p.path(looksDir)
	if err := os.MkdirAll(root, 0o700); err != nil {
		return "", nil, fault.Wrap(fault.Unavailable, err, "cannot make %q", root)
	}
	lock, err := layer.LockFile(ctx, filepath.Join(root, "lock"))
	if err != nil {
		return "", nil, err
	}
	defer lock.Close()
	for _, left := range directories(root) {
		if held, err := holdDirectory(left); err == nil {
			_ = os.RemoveAll(left) // else the next one removes it
			held.Close()
		}
	}
	dir, err = os.MkdirTemp(root, "")
	if err != nil {
		return "", nil, fault.Wrap(fault.Unavailable, err, "cannot make a directory in %q", root)
	}
	held, err := holdDirectory(dir)
	if err != nil {
		return "", nil, errors.Join(fault.Wrap(fault.Unavailable, err, "cannot lock %q", dir), os.RemoveAll(dir))
	}
	return dir, func() error {
		err := os.RemoveAll(dir)
		if err = errors.Join(err, held.Close()); err != nil {
			return fault.Wrap(fault.Unavailable, err, "cannot remove %q", dir)
		}
		return nil
	}, nil
}

// holdDirectory locks a directory unless another process holds it.
func holdDirectory(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
