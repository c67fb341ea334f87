//go:build !linux

package outpost

import (
	"errors"
	"io/fs"
	"os"
)

// Only Linux has overlays: nothing here hides anything.
func isOpaque(*os.File) (bool, error) { return false, nil }

func makeOpaque(*os.File) error { return errors.ErrUnsupported }

func isWhiteout(fs.FileInfo) bool { return false }

func makeWhiteout(*os.File, string) error { return errors.ErrUnsupported }
