package fake

import (
	"context"
	"os"
	"path/filepath"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
)

// Room implements driver.Retainer: there is always some.
func (d Driver) Room(_ context.Context, lease driver.Lease) (driver.Room, error) {
	if d.has(EmptiesTheTrash) {
		if err := os.RemoveAll(filepath.Join(lease.StateDir, "upper")); err != nil {
			return driver.Room{}, err
		}
		return driver.Room{}, os.Mkdir(filepath.Join(lease.StateDir, "upper"), 0o755)
	}
	return driver.Room{Free: 1, Total: 1}, nil
}
