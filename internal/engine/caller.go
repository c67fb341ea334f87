package engine

import (
	"context"

	"github.com/litterbox-sandbox/litterbox/internal/caller"
)

// callerOf is the caller that ctx works for (package caller): it decides what a
// sandbox is told of the human, and which of the host's directories are lent to it.
func callerOf(ctx context.Context) *caller.Caller { return caller.Of(ctx) }
