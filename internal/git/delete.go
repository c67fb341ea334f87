package git

import "context"

// DeleteBranch deletes a branch that is at tip; Conflict if it moved. For
// branches with work of their own see [branch.Trash].
func (r *Repository) DeleteBranch(ctx context.Context, branch, tip string) error {
	if err := CheckRef(branch); err != nil {
		return err
	}
	return r.UpdateRefs(ctx, "cannot delete the branch", branch, "delete "+Heads+branch+"\x00"+tip+"\x00")
}
