package branch

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
)

// storeLargeFile keeps the content behind a Git LFS pointer where Git LFS
// looks for it, named by its hash (git-lfs specification, "The Server"/local
// storage), so that committing only the pointer loses nothing.
func storeLargeFile(r *git.Repository, s *git.Settings, content []byte) error {
	sum := sha256.Sum256(content)
	oid := hex.EncodeToString(sum[:])
	storage := s.Values["lfs.storage"]
	switch {
	case storage == "":
		storage = filepath.Join(r.CommonDir, "lfs")
	case !filepath.IsAbs(storage):
		storage = filepath.Join(r.CommonDir, storage)
	}
	dir := filepath.Join(storage, "objects", oid[:2], oid[2:4])
	path := filepath.Join(dir, oid)
	if info, err := os.Stat(path); err == nil && info.Size() == int64(len(content)) {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot make %q", dir)
	}
	f, err := os.CreateTemp(dir, "litterbox-")
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot write %q", path)
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(fault.Wrap(fault.Unavailable, err, "cannot write %q", path), os.Remove(f.Name()))
	}
	return nil
}
