package store

import (
	"context"
	"errors"
	"hash/fnv"
	"os"
	"path/filepath"

	"github.com/litterbox-sandbox/litterbox/internal/lock"
)

// Lock takes the sandbox's lock of that name, waiting until it is free or ctx
// ends. The kernel releases it when the process dies.
//
// All of a sandbox's locks are bytes of one file (open file description locks,
// fcntl(2), Linux 3.15), one byte for each name: making a file for each would
// be a good part of what creating a sandbox costs.
func (s *Store) Lock(ctx context.Context, id, name string) (unlock func(), err error) {
	path := filepath.Join(s.SandboxDir(id), "locks")
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, unavailable(err, "open the lock %q", path)
	}
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(name)) // never fails
	if err := lock.Byte(ctx, file, name, int64(hash.Sum32())); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return func() { _ = file.Close() }, nil // closing releases; nothing was written
}
