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

// InnerWork names a branch of the git inside, or its stash, that holds commits
// which were never taken: of the agent's own history only what HEAD there
// reaches comes out. It is empty where there is none. inner is what was taken
// last ([InnerHead]).
func InnerWork(ctx context.Context, r *git.Repository, q Quarantine, w workspace.Workspace, inner string) (string, error) {
	refs, err := w.Refs(ctx)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil // its files are gone, the branch is what there is
	}
	if err != nil {
		return "", err
	}
	known := func(oid string) bool { return oid == q.Base || oid == inner }
	// The machine of the sandbox may have made them up.
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
	for _, name := range slices.Sorted(maps.Keys(refs)) {
		c := in.git("rev-list", "--max-count=1", "--stdin")
		c.Stdin = strings.NewReader(refs[name] + "\n^" + strings.Join(append(taken, q.Base), "\n^") + "\n")
		out, err := c.Output(ctx)
		if len(out) > 0 || git.ExitCode(err) > 0 { // or it is no object that ever came out
			return name, nil
		}
		if err != nil {
			return "", fault.Wrap("", err, "cannot look up where the git inside stands")
		}
	}
	return "", nil
}

// innerRef reports whether it is a branch, or the stash, at a commit.
func innerRef(name, oid string) bool {
	return git.IsOid(oid) && (name == "refs/stash" || git.CheckRef(strings.TrimPrefix(name, git.Heads)) == nil && strings.HasPrefix(name, git.Heads))
}
