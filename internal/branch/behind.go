package branch

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/layer"
)

// BehindRequest asks how the files of a sandbox differ from its branch.
type BehindRequest struct {
	Branch string
	State  string // the sandbox's delta file
	Base   string // commit the layers hold
	Last   string // commit of the last iteration
	Dir    string // a directory for files of its own, which it replaces
}

// Behind is how the files of a sandbox, as last committed, differ from the tip
// of its branch: what others have committed there.
type Behind struct {
	Tip     string
	Inside  string         // tree of the sandbox's files
	Changes []git.TreeDiff // from there to the tip; submodules stay out
	Modules []string       // submodules at another commit on the tip

	tree  string // of the tip
	state *delta
}

// FindBehind compares. The caller holds the sandbox's lock.
func FindBehind(ctx context.Context, r *git.Repository, q BehindRequest) (b *Behind, err error) {
	if err := errors.Join(git.CheckRef(q.Branch), git.CheckOids(q.Base, q.Last)); err != nil {
		return nil, err
	}
	b = &Behind{}
	b.state, err = currentOrRebuilt(ctx, r, ImportRequest{Branch: q.Branch, State: q.State, Base: q.Base, Last: q.Last})
	if err != nil {
		return nil, err
	}
	if b.Tip, b.tree, err = r.Resolve(ctx, git.Heads+q.Branch); err != nil {
		return nil, err
	}
	switch d := b.state; {
	case d.shared:
		b.Inside, err = b.insideTree(ctx, r, q)
	case d.lastTree != "":
		b.Inside = d.lastTree
	default:
		_, b.Inside, err = r.Resolve(ctx, d.last)
	}
	if err != nil || b.Inside == b.tree {
		return b, err
	}
	all, err := r.DiffTrees(ctx, b.Inside, b.tree)
	if err != nil {
		return nil, fault.Wrap("", err, "cannot compare what the sandbox has with its branch")
	}
	for _, c := range all {
		if c.NewMode == git.ModeGitlink || c.OldMode == git.ModeGitlink {
			b.Modules = append(b.Modules, c.Path)
			continue
		}
		b.Changes = append(b.Changes, c)
	}
	return b, nil
}

// insideTree makes the tree of the sandbox's files, where its branch holds more
// than those: the base, without removed files, and with written ones.
func (b *Behind) insideTree(ctx context.Context, r *git.Repository, q BehindRequest) (tree string, err error) {
	if err := os.RemoveAll(q.Dir); err != nil {
		return "", fault.Wrap(fault.Unavailable, err, "cannot clear %q", q.Dir)
	}
	if err := os.MkdirAll(q.Dir, 0o700); err != nil {
		return "", fault.Wrap(fault.Unavailable, err, "cannot make %q", q.Dir)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(q.Dir)) }()
	run := func(stdin string, args ...string) (string, error) {
		c := r.Command(args...)
		c.Env = []string{"GIT_INDEX_FILE=" + filepath.Join(q.Dir, "index"), "GIT_LITERAL_PATHSPECS=1"}
		c.Stdin = strings.NewReader(stdin)
		return c.Line(ctx)
	}
	if _, err := run("", "read-tree", q.Base); err != nil {
		return "", err
	}
	if gone := slices.Sorted(maps.Keys(b.state.gone)); len(gone) > 0 {
		if _, err := run(strings.Join(gone, "\x00")+"\x00", "rm", "--cached", "-r", "-f", "-q", "--ignore-unmatch", "--pathspec-from-file=-", "--pathspec-file-nul"); err != nil {
			return "", err
		}
	}
	var files strings.Builder
	for path, f := range b.state.files {
		fmt.Fprintf(&files, "%o %s\t%s\x00", f.Mode, hex.EncodeToString([]byte(f.Oid)), path)
	}
	if _, err := run(files.String(), "update-index", "--add", "--replace", "-z", "--index-info"); err != nil {
		return "", err
	}
	return run("", "write-tree")
}

// Paths returns the paths where the sandbox has a file, and those where the
// tip has one.
func (b *Behind) Paths() (inside, tip []string) {
	for _, c := range b.Changes {
		if c.OldMode != 0 {
			inside = append(inside, c.Path)
		}
		if c.NewMode != 0 {
			tip = append(tip, c.Path)
		}
	}
	return inside, tip
}

// Followed records that the files of the sandbox are now those of the tip,
// except for the paths that stayed. The caller still holds the lock.
func (b *Behind) Followed(q BehindRequest, stayed map[string]bool, strict bool) error {
	d := b.state
	d.files, d.gone = maps.Clone(d.files), maps.Clone(d.gone)
	for _, c := range b.Changes {
		if stayed[c.Path] {
			continue
		}
		if c.NewMode == 0 {
			delete(d.files, c.Path)
			d.gone[c.Path] = struct{}{}
			continue
		}
		oid, err := hex.DecodeString(c.NewOid)
		if err != nil {
			return fault.Wrap(fault.Internal, err, "cannot read what git diff-tree printed")
		}
		d.files[c.Path] = layer.File{Mode: c.NewMode, Oid: string(oid)} // read again by the next commit
	}
	d.last, d.lastTree, d.shared = b.Tip, b.tree, len(stayed)+len(b.Modules) > 0
	if err := d.stage(q.State, strict); err != nil {
		return err
	}
	return commitStaged(q.State)
}

// SetInnerHead records a commit of the git inside as taken.
func SetInnerHead(ctx context.Context, r *git.Repository, state, branch, head string) error {
	if err := git.CheckOids(head); err != nil {
		return err
	}
	d, err := currentDelta(ctx, r, state, git.Heads+branch)
	if d == nil || err != nil {
		return err
	}
	d.inner = head
	if err := d.stage(state, false); err != nil {
		return err
	}
	return commitStaged(state)
}
