//go:build !linux

package layer

import (
	"context"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
)

var errCopy = fault.New(fault.Unsupported, "cannot copy a workspace on this system").
	WithHint("litterbox create --driver lima")

// Make needs openat2(2).
func (Copy) Make(context.Context, git.Owner, Progress) error { return errCopy }

// Forget fails: there are no copies on this system.
func (Copy) Forget() error { return errCopy }
