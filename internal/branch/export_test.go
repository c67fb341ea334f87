package branch

import (
	"context"

	"github.com/litterbox-sandbox/litterbox/internal/git"
)

// Squash makes a milestone's commit and calls name before any ref names it.
func Squash(ctx context.Context, r *git.Repository, q MilestoneRequest, tree string, name func(commit string) error) (string, error) {
	return squash(ctx, r, q, tree, name)
}
