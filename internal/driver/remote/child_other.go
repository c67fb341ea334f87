//go:build !linux

package remote

import (
	"context"
	"fmt"
	"io"
	"io/fs"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
)

// Ensure implements Machine.
func (c Child) Ensure(context.Context) error { return driver.ErrUnsupported }

// Dial implements Machine.
func (c Child) Dial(context.Context) (io.ReadWriteCloser, error) {
	return nil, driver.ErrUnreachable
}

func identityOf(info fs.FileInfo) string { return fmt.Sprint(info.ModTime().UnixNano(), info.Sys()) }
