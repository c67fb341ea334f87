package container

import (
	"context"
	"errors"
	"io"
	"io/fs"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// KeepGolden implements driver.GoldenKeeper: the golden is in the container of its
// sandbox, and so are all that begin with it.
func (d *Driver) KeepGolden(ctx context.Context, from, golden driver.Lease, paths []string) (driver.Snapshot, error) {
	if err := stays(from, golden); err != nil {
		return driver.Snapshot{}, err
	}
	return d.Driver.KeepGolden(ctx, from, golden, paths)
}

// WriteGolden implements driver.GoldenKeeper: only what was built in a container tells
// which one a golden is of.
func (d *Driver) WriteGolden(context.Context, driver.Lease, io.Reader) (driver.Snapshot, error) {
	return driver.Snapshot{}, fault.Wrap("", driver.ErrUnsupported, "a golden in a container is built there")
}

// BeginWith implements driver.GoldenKeeper.
func (d *Driver) BeginWith(golden driver.Lease, id string, edits []driver.Edit, to driver.Lease) error {
	if err := stays(golden, to); err != nil {
		return err
	}
	return d.Driver.BeginWith(golden, id, edits, to)
}

// stays records that what begins is in the container of its origin.
func stays(from, to driver.Lease) error {
	record, err := readRecord(from.StateDir)
	if errors.Is(err, fs.ErrNotExist) {
		return fault.Wrap("", driver.ErrNoSnapshot, "its files have not begun in a container")
	}
	if err != nil {
		return err
	}
	return record.write(to.StateDir)
}
