package branch

import "context"

// DeleteBranch deletes a branch that stands at tip; Conflict when it moved.
// For branches with work of their own see [Repository.Trash].
func (r *Repository) DeleteBranch(ctx context.Context, branch, tip string) error {
	if err := checkRef(branch); err != nil {
		return err
	}
	return r.updateRefs(ctx, "cannot delete the branch", branch, "delete "+heads+branch+"\x00"+tip+"\x00")
}
