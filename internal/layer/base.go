package layer

import (
	"context"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/workspace"
)

// OpenBase opens the base that a workspace is compared with.
func OpenBase(ctx context.Context, r *git.Repository, base workspace.Base) (Beneath, error) {
	switch {
	case base.Copied != "":
		return OpenListing(base.Copied, r.ObjectFormat)
	case base.Tree != "":
		return OpenTree(ctx, r, base.Tree)
	case len(base.Layers) > 0:
		return OpenStack(base.Layers)
	}
	return nil, fault.New(fault.Internal, "cannot compare the workspace: it has no base")
}
