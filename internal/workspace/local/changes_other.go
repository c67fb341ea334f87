//go:build !linux

package local

import (
	"context"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/workspace"
)

// Changes needs overlayfs and openat2(2), which only Linux has.
func (Files) Changes(context.Context) (workspace.Changes, error) {
	return nil, fault.New(fault.Unsupported, "cannot read an overlay directory on this system").
		WithHint("litterbox create --driver lima")
}

// Refs needs openat2(2).
func (Files) Refs(context.Context) (map[string]string, error) {
	return nil, fault.New(fault.Unsupported, "cannot read an overlay directory on this system")
}
