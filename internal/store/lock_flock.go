//go:build unix && !linux

package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/litterbox-sandbox/litterbox/internal/lock"
)

// Lock takes the sandbox's lock of that name (flock(2)), waiting until it is
// free or ctx ends. The kernel releases it when the process dies.
func (s *Store) Lock(ctx context.Context, id, name string) (unlock func(), err error) {
	path := filepath.Join(s.SandboxDir(id), name+".lock")
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, unavailable(err, "open the lock %q", path)
	}
	if err := lock.File(ctx, file); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return func() { _ = file.Close() }, nil // closing releases; nothing was written
}
