package git

import (
	"context"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// RenameBranch renames a branch, with its log and its configuration. Checkouts
// of it follow. An existing branch of the new name is fault.AlreadyExists.
func (r *Repository) RenameBranch(ctx context.Context, from, to string) error {
	for _, name := range []string{from, to} {
		if err := CheckRef(name); err != nil {
			return err
		}
	}
	if _, err := r.Tip(ctx, to); err == nil {
		return fault.New(fault.AlreadyExists, "cannot rename the branch %q: a branch %q exists", from, to)
	} else if fault.KindOf(err) != fault.NotFound {
		return err
	}
	if _, err := r.Command("branch", "-m", "--", from, to).Output(ctx); err != nil {
		return fault.Wrap(fault.Conflict, err, "cannot rename the branch %q to %q", from, to)
	}
	return nil
}
