package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/process"
	"github.com/litterbox-sandbox/litterbox/internal/seal"
)

func (s *Store) read(path string, into any) error {
	data, err := process.ReadAtOnce(path)
	if err != nil {
		return unavailable(err, "read the record %q", path)
	}
	if err := seal.Decode(data, into); err != nil {
		return damaged(err, path)
	}
	return nil
}

// damaged is the error of a record that differs from what was written; it is a
// [seal.ErrDamaged]. Callers that know how to mend it replace it.
func damaged(err error, path string) *fault.Error {
	return fault.Wrap(fault.Internal, err, "cannot read the record %q", path).
		WithHint("if you changed it by hand, empty the \"checksum\" at its end")
}

// before is asked before each change.
func (s *Store) before(path string) error {
	if s.Before == nil {
		return nil
	}
	return s.Before(path)
}

// write replaces path in one step: a reader sees the old record or the new one.
func (s *Store) write(path string, record any) error {
	data, err := seal.Encode(record)
	if err != nil {
		return fault.Wrap(fault.Internal, err, "cannot encode the record %q", path)
	}
	if err := s.before(path); err != nil {
		return unavailable(err, "write the record %q", path)
	}
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return unavailable(err, "write the record %q", path)
	}
	_, err = file.Write(data)
	if err == nil && s.Strict() {
		err = file.Sync()
	}
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err == nil && s.Strict() {
		err = syncDir(filepath.Dir(path))
	}
	if err != nil {
		return errors.Join(unavailable(err, "write the record %q", path), ignoreMissing(os.Remove(file.Name())))
	}
	return nil
}

func syncDir(dir string) error {
	file, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func unavailable(cause error, format string, args ...any) *fault.Error {
	return fault.Wrap(fault.Unavailable, cause, "cannot %s", fmt.Sprintf(format, args...))
}
