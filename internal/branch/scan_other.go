//go:build !linux

package branch

import (
	"context"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// walk needs overlayfs and openat2(2).
func (s *scan) walk(context.Context) error {
	return fault.New(fault.Unsupported, "cannot read an overlay directory on this system").
		WithHint("litterbox create --driver lima")
}

// Expand needs openat2(2).
func (s *scan) Expand(string) ([]string, error) {
	return nil, fault.New(fault.Unsupported, "cannot read a layer on this system")
}

// innerRefs needs openat2(2).
func innerRefs(Source) (map[string]string, error) {
	return nil, fault.New(fault.Unsupported, "cannot read an overlay directory on this system")
}
