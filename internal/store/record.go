package store

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/lock"
	"github.com/litterbox-sandbox/litterbox/internal/process"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/seal"
)

// The further records of a sandbox, read with Record.
const (
	ServicesFile = "services.json" // its services, and which of them are wanted
	PortsFile    = "ports.json"    // its forwarded ports, and their numbers
)

// Record reads a further record of a sandbox, which begins with a version. A
// missing record is not an error; a damaged one is a [seal.ErrDamaged], and into is
// then empty.
func (s *Store) Record(id, file string, into any) (found bool, err error) {
	path := filepath.Join(s.SandboxDir(id), file)
	data, err := process.ReadAtOnce(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, unavailable(err, "read the record %q", path)
	}
	var head struct {
		Version int `json:"version"`
	}
	if err := errors.Join(seal.Decode(data, &head), seal.Decode(data, into)); err != nil {
		reflect.ValueOf(into).Elem().SetZero() // half a record does not count
		return false, damaged(err, path)
	}
	if head.Version > sandbox.RecordVersion {
		return false, fault.New(fault.Unsupported, "cannot use %q: it is version %d and this program knows %d", path, head.Version, sandbox.RecordVersion).
			WithHint("install a newer litterbox")
	}
	return true, nil
}

// SaveRecord replaces a further record of a sandbox. The caller sets its version:
// sandbox.RecordVersion.
func (s *Store) SaveRecord(id, file string, record any) error {
	return s.write(filepath.Join(s.SandboxDir(id), file), record)
}

// ShareTable reads a table that all sandboxes share, lets change change it, and
// writes it, while no other process does. A damaged table starts over, so it must
// hold nothing that would be missed.
func (s *Store) ShareTable(ctx context.Context, name string, table any, change func() error) error {
	path := filepath.Join(s.Root, name)
	held, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return unavailable(err, "open the lock of %q", path)
	}
	defer held.Close() // which releases the lock
	if err := lock.File(ctx, held); err != nil {
		return err
	}
	err = s.read(path, table)
	if errors.Is(err, seal.ErrDamaged) {
		reflect.ValueOf(table).Elem().SetZero() // it starts over
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := change(); err != nil {
		return err
	}
	return s.write(path, table)
}
