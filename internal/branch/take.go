package branch

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/workspace"
)

// InnerBranch is a branch of the git inside.
type InnerBranch struct {
	Name   string // without refs/heads/
	Commit string // inside
	Apart  bool   // it has commits that are on no branch of the host
	Taken  string // the host's branch that it was taken as, unless it has moved since
}

// InnerBranches lists the branches of the git inside, by name, including those
// of its worktrees. They are the sandbox's word. inner is the commit taken last
// ([InnerHead]).
func InnerBranches(ctx context.Context, r *git.Repository, q Quarantine, w workspace.Workspace, inner string) ([]InnerBranch, error) {
	all := []InnerBranch{}
	refs, err := w.Refs(ctx)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil // its files are gone
	}
	if err != nil {
		return nil, err
	}
	in := intake{r: r, q: q, c: git.Command{GitDir: q.Dir, Private: true}}
	if err := in.prepare(); err != nil {
		return nil, err
	}
	taken, err := in.remember(inner)
	if err != nil {
		return nil, err
	}
	came, err := q.out()
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(refs)) {
		short, ok := strings.CutPrefix(name, git.Heads)
		if !ok || !innerRef(name, refs[name]) {
			continue
		}
		one := InnerBranch{Name: short, Commit: refs[name]}
		if one.Commit != q.Base && one.Commit != inner {
			if one.Apart, err = in.apart(ctx, one.Commit, taken); err != nil {
				return nil, err
			}
		}
		if one.Apart {
			if one.Taken, err = in.cameOut(ctx, short, one.Commit, came); err != nil {
				return nil, err
			}
			one.Apart = one.Taken == ""
		}
		all = append(all, one)
	}
	return all, nil
}

// ReceiveBranch is [Receive] for a branch other than HEAD: it takes all commits
// between the base and want, including those that came out before.
func ReceiveBranch(ctx context.Context, r *git.Repository, q Quarantine, pack io.Reader, want string) (*Received, error) {
	return receive(ctx, r, q, pack, want, "", func(intake) ([]string, error) { return nil, nil })
}

// TakeRequest asks for a branch of what was received.
type TakeRequest struct {
	From   InnerBranch
	Branch string // to be made
	Base   string // the parent of its first commit
	State  string // the sandbox's delta file
	Strict bool
}

// Take writes received commits to a new branch of the host, records that in the
// quarantine, and returns the branch's tip. It fails with fault.AlreadyExists if
// there is one of that name.
func Take(ctx context.Context, r *git.Repository, in Quarantine, q TakeRequest, received *Received) (tip string, err error) {
	defer received.release()
	if err := errors.Join(git.CheckRef(q.Branch), git.CheckOids(q.Base)); err != nil {
		return "", err
	}
	err = git.DespiteCollection(ctx, func(again bool) error {
		if again {
			r.DropKeeps()
			if err := received.restore(ctx); err != nil {
				return err
			}
		}
		tip, err = take(ctx, r, q, received)
		return err
	})
	if err != nil {
		return "", err
	}
	return tip, in.noteOut(q.From.Name, out{Commit: q.From.Commit, As: q.Branch, Tip: tip})
}

func take(ctx context.Context, r *git.Repository, q TakeRequest, received *Received) (string, error) {
	name := func(tip string) error {
		err := r.UpdateRefs(ctx, "cannot make the branch", q.Branch, "create "+git.Heads+q.Branch+"\x00"+tip+"\x00")
		if _, _, taken := r.Resolve(ctx, git.Heads+q.Branch); err != nil && taken == nil {
			return fault.New(fault.AlreadyExists, "cannot make the branch %q: it exists already", q.Branch)
		}
		return err
	}
	if len(received.commits()) == 0 {
		return q.Base, name(q.Base)
	}
	f, err := r.StartFastImport(ctx, q.State+git.PacksSuffix, q.Strict)
	if err != nil {
		return "", err
	}
	defer f.Stop()
	never := git.PreviewRefs + q.Branch // git wants a ref, which must not exist
	tip, parent := "", q.Base
	for _, c := range received.Commits {
		if err := f.Begin(never, c.Author, c.Committer, string(c.Message), parent); err != nil {
			return "", fault.Wrap("", err, "cannot take the branch")
		}
		parent = ":1" // the branch as it now stands
		f.Edit(git.Edit{Mode: git.ModeTree, Oid: c.Tree})
		if tip, err = f.End(); err != nil {
			return "", fault.Wrap("", err, "cannot take the branch")
		}
	}
	f.Reset(never, r.Zero())
	if err := f.Keep(); err != nil {
		return "", fault.Wrap("", err, "cannot take the branch")
	}
	if err := name(tip); err != nil {
		return "", err
	}
	return tip, f.Finish()
}
