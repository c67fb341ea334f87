package feed

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/workspace"
)

// Source can look at the files. Anything it says may be wrong, too long or
// endless. Its methods are called by several goroutines at once.
type Source interface {
	// List streams what [Write] writes. The caller closes it.
	List(ctx context.Context) (io.ReadCloser, error)

	// Content streams what [WriteFile] writes, of the file at a path of a
	// listing. The caller closes it.
	Content(ctx context.Context, path string) (io.ReadCloser, error)

	// Refs are the branches and the stash of the git inside.
	Refs(ctx context.Context) (map[string]string, error)

	// Size returns the space that the changes and the home take there, in bytes.
	Size(ctx context.Context) (changes, home int64, err error)
}

// Pruner is a source that can leave out what git ignores.
type Pruner interface {
	// ListBut streams what [WriteBut] writes. The last text is that of the base's
	// topmost .gitignore.
	ListBut(ctx context.Context, fold bool, texts [][]byte) (io.ReadCloser, error)

	// ListBelow streams what [WriteBelow] writes of a directory that was left out.
	ListBelow(ctx context.Context, path string) (io.ReadCloser, error)
}

// Workspace asks a source about files. It implements [workspace.Workspace];
// what the source cannot say is unknown.
type Workspace struct {
	Source   Source
	Compared workspace.Base
	Limits   Limits
}

// Base implements workspace.Workspace.
func (w Workspace) Base() workspace.Base { return w.Compared }

// Where implements workspace.Workspace: it is not a place that a human can open.
func (w Workspace) Where() string { return "" }

// Exists implements workspace.Workspace: a source that answers has files. It is
// asked a question that needs no walk.
func (w Workspace) Exists(ctx context.Context) (bool, error) {
	if _, err := w.Source.Refs(ctx); err != nil {
		return false, workspace.Unknown(err)
	}
	return true, nil
}

// Touched implements workspace.Workspace: knowing would need a full listing.
func (w Workspace) Touched(context.Context, ...string) (bool, error) { return true, nil }

// Size implements workspace.Workspace.
func (w Workspace) Size(ctx context.Context) (workspace.Size, error) {
	changes, home, err := w.Source.Size(ctx)
	if err != nil {
		return workspace.Size{}, workspace.Unknown(err)
	}
	return workspace.Size{Changes: max(0, changes), Home: max(0, home)}, nil
}

// Refs implements workspace.Workspace.
func (w Workspace) Refs(ctx context.Context) (map[string]string, error) {
	refs, err := w.Source.Refs(ctx)
	if err != nil {
		return nil, workspace.Unknown(err)
	}
	if len(refs) > workspace.MaxRefs {
		return nil, workspace.Unknown(errors.New("the git inside has more branches than are read"))
	}
	return refs, nil
}

// Home implements workspace.Workspace: only the place itself can read it.
func (w Workspace) Home(context.Context, string) (*os.Root, error) {
	return nil, workspace.Unknown(errors.New("its home is in its machine"))
}

// Changes implements workspace.Workspace.
func (w Workspace) Changes(ctx context.Context) (workspace.Changes, error) {
	return w.taken(ctx, w.Source.List, false)
}

// ChangesBut implements workspace.Pruner.
func (w Workspace) ChangesBut(ctx context.Context, rules workspace.Rules) (workspace.Changes, error) {
	pruner, can := w.Source.(Pruner)
	if !can {
		return w.Changes(ctx)
	}
	return w.taken(ctx, func(ctx context.Context) (io.ReadCloser, error) { return pruner.ListBut(ctx, rules.Fold, rules.Texts) }, true)
}

// taken returns a listing that has come whole.
func (w Workspace) taken(ctx context.Context, list func(context.Context) (io.ReadCloser, error), pruned bool) (workspace.Changes, error) {
	stream, err := list(ctx)
	if err != nil {
		return nil, workspace.Unknown(err)
	}
	// A source that falls silent is left when the caller gives up.
	stop := context.AfterFunc(ctx, func() { _ = stream.Close() })
	l, err := read(stream, w.Limits, pruned)
	stop()
	if err == nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = stream.Close() // its content is refused
		return nil, workspace.Unknown(err)
	}
	return &changes{ctx: ctx, w: w, listing: l, stream: stream}, nil
}

// changes is a listing, and the content asked for meanwhile.
type changes struct {
	*listing
	ctx    context.Context
	w      Workspace
	stream io.Closer
}

func (c *changes) Began() int64 { return c.began }

func (c *changes) Top() (workspace.Dir, error) {
	return dir{below: c.top, open: c.open, list: c.list}, nil
}

func (c *changes) File(path string) (workspace.File, error) {
	parent, name := "", path
	if at := strings.LastIndexByte(path, '/'); at >= 0 {
		parent, name = path[:at], path[at+1:]
	}
	below := c.walk(parent)
	if below == nil {
		return nil, workspace.Changing
	}
	return dir{below: below, path: parent, open: c.open, list: c.list}.File(name)
}

// list asks for a directory that was left out. Without an answer everything is
// unknown: it may have files that the branch tracks.
func (c *changes) list(path string) (*below, error) {
	pruner, can := c.w.Source.(Pruner)
	if !can {
		return nil, workspace.Unknown(errors.New("a directory was left out that cannot be asked for"))
	}
	stream, err := pruner.ListBelow(c.ctx, path)
	if err != nil {
		return nil, workspace.Unknown(err)
	}
	stop := context.AfterFunc(c.ctx, func() { _ = stream.Close() })
	d, err := c.readBelow(stream, len(path))
	stop()
	if err = errors.Join(err, c.ctx.Err()); err != nil {
		_ = stream.Close() // its content is refused
		return nil, workspace.Unknown(err)
	}
	return d, stream.Close()
}

func (c *changes) open(path string) (workspace.File, error) {
	stream, err := c.w.Source.Content(c.ctx, path)
	if err != nil {
		return nil, workspace.Unknown(err)
	}
	f, err := openFile(stream)
	var stays workspace.Stays
	switch {
	case err == nil:
		return f, nil
	case errors.As(err, &stays):
		return nil, errors.Join(err, stream.Close())
	}
	return nil, errors.Join(workspace.Unknown(err), stream.Close())
}

func (c *changes) Close() error { return c.stream.Close() }
