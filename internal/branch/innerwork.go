package branch

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/workspace"
)

// InnerWork names a branch of the git inside, or its stash, that holds commits which
// were never taken: only the part of the agent's own history that HEAD reaches comes
// out by itself. It is empty if there is none. inner is the commit taken last ([InnerHead]).
func InnerWork(ctx context.Context, r *git.Repository, q Quarantine, w workspace.Workspace, inner string) (string, error) {
	refs, err := w.Refs(ctx)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil // its files are gone; only the branch is left
	}
	if err != nil {
		return "", err
	}
	known := func(oid string) bool { return oid == q.Base || oid == inner }
	// The machine of the sandbox may have invented them.
	maps.DeleteFunc(refs, func(name, oid string) bool { return known(oid) || !innerRef(name, oid) })
	if len(refs) == 0 {
		return "", nil
	}
	in := intake{r: r, q: q, c: git.Command{GitDir: q.Dir, Private: true}}
	if err := in.prepare(); err != nil {
		return "", err
	}
	taken, err := in.remember(inner)
	if err != nil {
		return "", err
	}
	came, err := q.out()
	if err != nil {
		return "", err
	}
	for _, name := range slices.Sorted(maps.Keys(refs)) {
		apart, err := in.apart(ctx, refs[name], taken)
		if short, ok := strings.CutPrefix(name, git.Heads); err == nil && apart && ok {
			var as string
			as, err = in.cameOut(ctx, short, refs[name], came)
			apart = as == ""
		}
		if err != nil || apart {
			return name, err
		}
	}
	return "", nil
}

// apart reports whether a commit that the sandbox names for a branch inside
// has commits that were never taken.
func (in intake) apart(ctx context.Context, oid string, taken []string) (bool, error) {
	c := in.git("rev-list", "--max-count=1", "--stdin")
	c.Stdin = strings.NewReader(oid + "\n^" + strings.Join(append(slices.Clone(taken), in.q.Base), "\n^") + "\n")
	out, err := c.Output(ctx)
	if len(out) > 0 || git.ExitCode(err) > 0 { // or it is not an object that ever came out
		return true, nil
	}
	if err != nil {
		return false, fault.Wrap("", err, "cannot look up where the git inside stands")
	}
	return false, nil
}

// innerRef reports whether name is a branch, or the stash, and oid a commit.
func innerRef(name, oid string) bool {
	return git.IsOid(oid) && (name == "refs/stash" || git.CheckRef(strings.TrimPrefix(name, git.Heads)) == nil && strings.HasPrefix(name, git.Heads))
}
