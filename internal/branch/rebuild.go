package branch

import (
	"context"
	"encoding/hex"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/layer"
)

// InnerHead returns the last commit taken from the agent's own history,
// according to the delta file; empty if none was. It is exact across crashes as
// long as no Import is under way.
func InnerHead(ctx context.Context, r *git.Repository, state, branch string) (string, error) {
	d, err := currentDelta(ctx, r, state, git.Heads+branch)
	if d == nil || err != nil {
		return "", err
	}
	return d.inner, nil
}

// currentDelta reads the delta file and completes an interrupted commit. It
// returns nil if the file is missing or damaged.
func currentDelta(ctx context.Context, r *git.Repository, path, ref string) (*delta, error) {
	current, next := loadDelta(path)
	if next == nil {
		return current, nil
	}
	tip, err := r.Command("rev-parse", "--verify", "--quiet", ref+"^{commit}").Line(ctx)
	if err != nil && git.ExitCode(err) != 1 { // 1: there is none
		return nil, err
	}
	landed := tip == next.last
	if !landed && tip != "" {
		// A commit that never landed is not known to git: an error means no.
		landed, err = r.IsAncestor(ctx, next.last, tip)
		if err != nil && git.ExitCode(err) < 0 {
			return nil, err
		}
	}
	if !landed {
		return current, nil
	}
	return next, commitStaged(path)
}

// currentOrRebuilt returns the state of the last iteration, rebuilt from the commits if
// the file is missing, damaged or about another base.
func currentOrRebuilt(ctx context.Context, r *git.Repository, q ImportRequest) (*delta, error) {
	d, err := currentDelta(ctx, r, q.State, git.Heads+q.Branch)
	if err != nil {
		return nil, err
	}
	if d != nil && d.base == q.Base {
		return d, nil
	}
	d = newDelta(q.Base)
	if q.Last == "" || q.Last == q.Base {
		return d, nil
	}
	d.last = q.Last
	changes, err := r.DiffTrees(ctx, q.Base, q.Last)
	if err != nil {
		return nil, fault.Wrap("", err, "cannot rebuild the state of branch %q", q.Branch)
	}
	for _, c := range changes {
		if c.NewMode == 0 {
			d.gone[c.Path] = struct{}{}
			continue
		}
		oid, err := hex.DecodeString(c.NewOid)
		if err != nil {
			return nil, fault.Wrap(fault.Internal, err, "cannot read what git diff-tree printed")
		}
		d.files[c.Path] = layer.File{Mode: c.NewMode, Oid: string(oid)}
	}
	return d, nil
}
