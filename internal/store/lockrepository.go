package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/litterbox-sandbox/litterbox/internal/lock"
)

// LockRepository takes a lock of that name for a repository, waiting until it is
// free or ctx ends. The kernel releases it when the process dies.
func (s *Store) LockRepository(ctx context.Context, gitDir, name string) (unlock func(), err error) {
	path := filepath.Join(s.RepositoryDir(gitDir), name+".lock")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, unavailable(err, "open the lock %q", path)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, unavailable(err, "open the lock %q", path)
	}
	if err := lock.File(ctx, file); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return func() { _ = file.Close() }, nil // closing releases; nothing was written
}
