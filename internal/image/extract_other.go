//go:build !linux

package image

import (
	"context"
	"io"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

func extract(context.Context, io.Reader, string, Owner, Limits) error {
	return fault.New(fault.Unsupported, "cannot unpack an image on this system").WithHint("run litterbox on Linux")
}

func flush(string) error { return nil }

func isOpaque(string) bool { return false }
