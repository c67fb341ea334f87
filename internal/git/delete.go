package git

import "context"

// DeleteBranch deletes a branch that stands at tip; Conflict when it moved.
// For branches with work of their own see [branch.Trash].
func (r *Repository) DeleteBranch(ctx context.Context, branch, tip string) error {
	if err := CheckRef(branch); err != nil {
		return err
	}
	return r.UpdateRefs(ctx, "cannot delete the branch", branch, "delete "+Heads+branch+"\x00"+tip+"\x00")
}
