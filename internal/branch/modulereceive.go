package branch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/layer"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// receivedRefs hold, in the git directory of a submodule, the commits that came
// out of sandboxes: one ref for each, so that neither gc nor another sandbox
// removes commits that a merged branch names.
const receivedRefs = "refs/litterbox/received/"

// ReceiveModule takes the commits that an agent made in a submodule into the
// host's object store of that submodule, as they are: a branch names them by
// their ids. They are checked like those of the repository itself
// ([Receive]): git's fsck in a quarantine, then every path of every
// tree. have is the commit taken last, or empty.
func ReceiveModule(ctx context.Context, r *git.Repository, q Quarantine, m sandbox.Module, pack io.Reader, want, have string) error {
	if err := git.CheckOids(want, have, m.Commit); err != nil {
		return err
	}
	views, err := os.MkdirTemp("", "litterbox-modules-")
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot look at the submodule %q", m.Path)
	}
	defer os.RemoveAll(views)
	if !layer.IsGitDir(m.Origin) {
		return fault.New(fault.NotFound, "cannot find the submodule's git directory %q", m.Origin).
			WithHint("git submodule update --init -- %s", git.ShellWord(m.Path))
	}
	sub, err := layer.OpenModule(ctx, m.Origin, r.ObjectFormat, views)
	if err != nil {
		return err
	}
	q.Base, q.State = m.Commit, ""
	in := moduleIntake{intake{r: sub, q: q, c: git.Command{GitDir: q.Dir, Private: true}}}
	if err := in.prepare(); err != nil {
		return err
	}
	in.unkeep() // the remains of a kill
	taken, err := in.remember(have)
	if err != nil {
		return err
	}
	had := in.packs()
	refuse := func(err error) error {
		return in.refuse(want, had, fault.Wrap("", err, "cannot take the commits of the submodule %q", m.Path))
	}
	if err := in.index(ctx, pack); err != nil {
		return refuse(err)
	}
	err = git.DespiteCollection(ctx, func(bool) error {
		if err := in.take(ctx, want, taken); err != nil {
			return err
		}
		return keepReceived(ctx, sub, want)
	})
	in.unkeep()
	if err != nil {
		return refuse(err)
	}
	return nil
}

type moduleIntake struct{ intake }

// take verifies new objects and copies them, commits included.
func (in moduleIntake) take(ctx context.Context, want string, taken []string) error {
	known := "\n^" + strings.Join(append(taken, in.q.Base), "\n^") + "\n"
	c := in.git("rev-list", "--topo-order", "--reverse", fmt.Sprintf("--max-count=%d", maxAgentCommits+1), "--stdin")
	c.Stdin = strings.NewReader(want + known)
	out, err := c.Output(ctx)
	if err != nil {
		return err
	}
	oids := strings.Fields(string(out))
	if len(oids) > maxAgentCommits {
		return fault.New(fault.Denied, "there are more than %d of them", maxAgentCommits)
	}
	if len(oids) == 0 {
		return nil
	}
	c = in.git("cat-file", "--batch")
	c.Stdin = strings.NewReader(strings.Join(oids, "\n") + "\n")
	if out, err = c.Output(ctx); err != nil {
		return err
	}
	commits, err := parseCommits(out, len(oids))
	if err != nil {
		return err
	}
	for n := range commits {
		commits[n].ParentTree = "" // it holds a commit, and nothing is compared with it
	}
	if err := in.verify(ctx, commits); err != nil {
		return err
	}
	// From the base, too: the host may have lost or never had what was taken
	// from another sandbox.
	return in.send(ctx, want+"\n^"+in.q.Base+"\n", nil)
}

// keepReceived makes a ref for a commit that is there now. This is the one
// process on the submodule's own git directory: refs may be in any storage. The
// work tree that its configuration names may be gone, so another one is given.
func keepReceived(ctx context.Context, r *git.Repository, commit string) error {
	kind, err := r.Command("cat-file", "-t", commit).Line(ctx)
	if err != nil || kind != "commit" {
		return errors.Join(err, fault.New(fault.Denied, "%s is not a commit", commit))
	}
	c := git.Command{
		GitDir: r.CommonDir, Env: []string{"GIT_WORK_TREE=" + filepath.Join(r.CommonDir, "objects")},
		Args: []string{"update-ref", receivedRefs + commit, commit},
	}
	_, err = c.Output(ctx)
	return err
}
