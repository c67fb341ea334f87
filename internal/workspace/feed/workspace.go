package feed

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/workspace"
)

// Source is who can look at the files. Whatever it says may be wrong, too much
// or without an end. Its methods are called by several goroutines at once.
type Source interface {
	// List streams what [Write] writes. The caller closes it.
	List(ctx context.Context) (io.ReadCloser, error)

	// Content streams what [WriteFile] writes, of the file at a path of a
	// listing. The caller closes it.
	Content(ctx context.Context, path string) (io.ReadCloser, error)

	// Refs are the branches and the stash of the git inside.
	Refs(ctx context.Context) (map[string]string, error)

	// Size is what the changes and the home take there, in bytes.
	Size(ctx context.Context) (changes, home int64, err error)
}

// Workspace is files that are asked of a source. It implements
// [workspace.Workspace]; whatever the source cannot say is unknown.
type Workspace struct {
	Source   Source
	Compared workspace.Base
	Limits   Limits
}

// Base implements workspace.Workspace.
func (w Workspace) Base() workspace.Base { return w.Compared }

// Where implements workspace.Workspace: nowhere that a human can go.
func (w Workspace) Where() string { return "" }

// Exists implements workspace.Workspace: a source that answers has files.
func (w Workspace) Exists(ctx context.Context) (bool, error) {
	if _, _, err := w.Source.Size(ctx); err != nil {
		return false, workspace.Unknown(err)
	}
	return true, nil
}

// Touched implements workspace.Workspace: to know, all would be listed.
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
		return nil, workspace.Unknown(errors.New("the git inside has more branches than are looked at"))
	}
	return refs, nil
}

// Home implements workspace.Workspace: only the place itself can read there.
func (w Workspace) Home(context.Context, string) (*os.Root, error) {
	return nil, workspace.Unknown(errors.New("its home is in its machine"))
}

// Changes implements workspace.Workspace.
func (w Workspace) Changes(ctx context.Context) (workspace.Changes, error) {
	stream, err := w.Source.List(ctx)
	if err != nil {
		return nil, workspace.Unknown(err)
	}
	// A source that falls silent is left when the caller gives up.
	stop := context.AfterFunc(ctx, func() { _ = stream.Close() })
	l, err := read(stream, w.Limits)
	stop()
	if err == nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = stream.Close() // what it had to say is refused
		return nil, workspace.Unknown(err)
	}
	return &changes{ctx: ctx, w: w, listing: l, stream: stream}, nil
}

// changes is a listing, and the content that is asked for meanwhile.
type changes struct {
	*listing
	ctx    context.Context
	w      Workspace
	stream io.Closer
}

func (c *changes) Began() int64 { return c.began }

func (c *changes) Top() (workspace.Dir, error) { return dir{below: c.top, open: c.open}, nil }

func (c *changes) File(path string) (workspace.File, error) {
	parent, name := "", path
	if at := strings.LastIndexByte(path, '/'); at >= 0 {
		parent, name = path[:at], path[at+1:]
	}
	below := c.walk(parent)
	if below == nil {
		return nil, workspace.Changing
	}
	return dir{below: below, path: parent, open: c.open}.File(name)
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
