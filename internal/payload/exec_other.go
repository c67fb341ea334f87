//go:build !linux

package payload

import (
	"os"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

func self() (*os.File, error) {
	return nil, fault.New(fault.Unsupported, "this build carries no guest program for Linux").WithHint("make build")
}

func executable(file *os.File) (*os.File, error) { return file, nil }
