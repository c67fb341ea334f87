package branch

import (
	"context"
	"errors"

	"github.com/litterbox-sandbox/litterbox/internal/layer"
	"github.com/litterbox-sandbox/litterbox/internal/workspace"
)

// settle records what a file turned out to be, or why it stays as it was.
func (w *walker) settle(path string, kind layer.Kind, now layer.File, err error) error {
	var stays workspace.Stays
	if errors.As(err, &stays) {
		w.result.stays(path, stays)
		w.keep(path)
		return nil
	}
	if err != nil {
		return err
	}
	if kind == layer.KindDir || kind == layer.KindGitlink {
		w.result.gone[path] = struct{}{}
	}
	w.result.files[path] = now
	return nil
}

// unread leaves what cannot be looked at as it was last committed: its directory
// can be listed, not entered.
func (w *walker) unread(ctx context.Context, d *directory, path string, why workspace.Stays) error {
	kind, _, err := w.layers.Lookup(d.tracked, path)
	if err != nil {
		return err
	}
	_, known := w.old.files[path]
	if kind == layer.KindNone && !known && !w.trackedBelow(path) && (w.ignored(d, path, false) || w.ignored(d, path, true)) {
		w.meet(path)
		return nil
	}
	return w.staysBelow(ctx, path, why)
}

// staysBelow leaves a path and everything below it as it was last committed, and
// says so.
func (w *walker) staysBelow(ctx context.Context, path string, why workspace.Stays) error {
	if err := w.finishAll(ctx); err != nil {
		return err
	}
	w.result.stays(path, why)
	w.keepBelow(path)
	if w.copied != nil {
		w.copied.MeetBelow(path)
	}
	return nil
}

// stays notes that a path could not be committed as it is.
func (p *present) stays(path string, why workspace.Stays) {
	if !why.Passing {
		p.left.Add(path)
	}
	p.notes.Add("%q stays as last committed: %s", path, why.Why)
}
