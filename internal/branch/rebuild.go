package branch

import (
	"context"
	"encoding/hex"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// InnerHead is the last commit taken from the agent's own history, as the delta
// file knows it; empty when none was. It is exact across crashes as long as no
// Import is under way.
func (r *Repository) InnerHead(ctx context.Context, state, branch string) (string, error) {
	d, err := r.currentDelta(ctx, state, heads+branch)
	if d == nil || err != nil {
		return "", err
	}
	return d.inner, nil
}

// currentDelta reads the delta file and completes an interrupted commit. It
// gives nil when the file is missing or damaged.
func (r *Repository) currentDelta(ctx context.Context, path, ref string) (*delta, error) {
	current, next := loadDelta(path)
	if next == nil {
		return current, nil
	}
	tip, err := r.git("rev-parse", "--verify", "--quiet", ref+"^{commit}").line(ctx)
	if err != nil && exitCode(err) < 0 {
		return nil, err
	}
	landed := tip == next.last
	if !landed && tip != "" {
		// A commit that never landed is not known to git: an error means no.
		landed, err = r.IsAncestor(ctx, next.last, tip)
		if err != nil && exitCode(err) < 0 {
			return nil, err
		}
	}
	if !landed {
		return current, nil
	}
	return next, commitStaged(path)
}

// delta gives the state of the last iteration, rebuilt from the commits when
// the file is missing, damaged or about another base.
func (r *Repository) delta(ctx context.Context, q ImportRequest) (*delta, error) {
	d, err := r.currentDelta(ctx, q.State, heads+q.Branch)
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
	changes, err := r.diffTrees(ctx, q.Base, q.Last)
	if err != nil {
		return nil, fault.Wrap("", err, "cannot rebuild the state of branch %q", q.Branch)
	}
	for _, c := range changes {
		if c.newMode == 0 {
			d.gone[c.path] = struct{}{}
			continue
		}
		oid, err := hex.DecodeString(c.newOid)
		if err != nil {
			return nil, fault.Wrap(fault.Internal, err, "cannot read what git diff-tree printed")
		}
		d.files[c.path] = file{mode: c.newMode, oid: string(oid)}
	}
	return d, nil
}

// diffTrees compares two trees or commits, given as object ids.
func (r *Repository) diffTrees(ctx context.Context, from, to string) ([]treeDiff, error) {
	return diffTrees(ctx, r.git(), from, to)
}

func diffTrees(ctx context.Context, c call, from, to string) ([]treeDiff, error) {
	if !isOid(from) || !isOid(to) {
		return nil, fault.New(fault.Invalid, "cannot compare %q with %q: not object ids", from, to)
	}
	c.args = []string{"diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames", "--no-ext-diff",
		"--ignore-submodules=none", from, to, "--"}
	out, err := c.output(ctx)
	if err != nil {
		return nil, err
	}
	return parseRaw(out)
}
