package engine

import (
	"context"
	"errors"
	"io/fs"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// sighting is the result of a look-up of a name: the repository of a directory
// and the id of its sandbox. A name can be given to another sandbox afterwards.
type sighting struct {
	root      string // of the store
	dir, slug string
	location  git.Location // zero when git had to be asked
	id        string
}

// lookUp finds which sandbox slug is in the repository that dir belongs to.
func (e *Engine) lookUp(ctx context.Context, dir, slug string) (*sighting, error) {
	location, known := git.Locate(dir)
	gitDir := location.CommonDir
	if !known {
		var err error
		if gitDir, err = gitDirOf(ctx, dir); err != nil {
			return nil, e.elsewhere(ctx, dir, slug, err)
		}
	}
	id, err := e.Store.Claimed(gitDir, slug)
	if err != nil {
		return nil, err
	}
	if id == "" {
		err := fault.New(fault.NotFound, "no sandbox named %q in this repository", slug).WithHint("litterbox list")
		return nil, e.elsewhere(ctx, dir, slug, err)
	}
	return &sighting{root: e.Store.Root, dir: dir, slug: slug, location: location, id: id}, nil
}

// sighted is the look-up that the call open in ctx made when it began; nil when it
// looked up something else.
func (e *Engine) sighted(ctx context.Context, dir, slug string) *sighting {
	call := openCall(ctx)
	if call == nil || call.seen == nil {
		return nil
	}
	if s := call.seen; s.root == e.Store.Root && s.dir == dir && s.slug == slug {
		return s
	}
	return nil
}

// find opens the sandbox called name in the repository that dir belongs to, and
// finishes anything that a dead command left half-done.
func (e *Engine) find(ctx context.Context, dir, name string) (*place, error) {
	slug, err := sandbox.Slug(name)
	if err != nil {
		return nil, err
	}
	if s := e.sighted(ctx, dir, slug); s != nil {
		// The call may have waited since, and the name be another sandbox's.
		if record, err := e.sandbox(ctx, s.id); err == nil && record.Name == slug {
			return e.openFound(ctx, s, record)
		}
	}
	s, err := e.lookUp(ctx, dir, slug)
	if err != nil {
		return nil, err
	}
	record, err := e.sandbox(ctx, s.id)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.NotFound, "sandbox %q is being created or deleted", slug).WithHint("litterbox list")
	}
	if err != nil {
		return nil, err
	}
	return e.openFound(ctx, s, record)
}

// openFound opens a sandbox that was looked up.
func (e *Engine) openFound(ctx context.Context, s *sighting, record *sandbox.Sandbox) (*place, error) {
	p, err := e.open(ctx, record)
	if err != nil {
		return nil, err
	}
	if err := e.finishCopies(ctx, p); err != nil {
		return nil, err
	}
	if err := e.finishRename(ctx, p); err != nil {
		return nil, err
	}
	if p.record.Name != s.slug { // it was renamed while its old name was looked up
		return nil, fault.New(fault.NotFound, "sandbox %q is called %q now", s.slug, p.record.Name).WithHint("litterbox status %s", p.record.Name)
	}
	e.moveWorktree(ctx, p)
	p.seen = s.location
	return p, nil
}
