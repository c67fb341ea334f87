package engine

import (
	"context"

	"github.com/litterbox-sandbox/litterbox/internal/caller"
)

// callerOf is for whom ctx works: what a sandbox is told of the human, and which
// of the host's directories are lent to it, is the caller's (package caller).
func callerOf(ctx context.Context) *caller.Caller { return caller.Of(ctx) }
