package branch

import (
	"context"
	"errors"

	"github.com/litterbox-sandbox/litterbox/internal/layer"
	"github.com/litterbox-sandbox/litterbox/internal/workspace"
)

// release forgets the ignored paths that the agent's own commits stopped
// tracking (git rm --cached): git would not add them again.
func (w *walker) release(ctx context.Context, top *directory) error {
	for path := range w.old.released {
		kind, ignored, err := w.look(ctx, top, path)
		if err != nil {
			return err
		}
		if !ignored {
			continue
		}
		delete(w.result.files, path)
		if kind == layer.KindFile {
			w.result.gone[path] = struct{}{}
		}
	}
	return nil
}

// look walks down to a path to find what the layers have there and whether it
// is ignored.
func (w *walker) look(ctx context.Context, d *directory, path string) (layer.Kind, bool, error) {
	for i, from := 0, 0; i < len(path); i++ {
		if path[i] != '/' {
			continue
		}
		dir, name := path[:i], path[from:i]
		from = i + 1
		sub := &directory{path: dir, ignored: w.ignored(d, dir, true), ignore: d.ignore, attributes: d.attributes}
		var err error
		if _, sub.tracked, err = w.layers.Lookup(d.tracked, dir); err != nil {
			return layer.KindNone, false, err
		}
		if sub.visible, err = w.visible(d, dir); err != nil {
			return layer.KindNone, false, err
		}
		var stays workspace.Stays
		switch sub.written, err = d.written.Dir(name); {
		case err == nil:
			defer sub.written.Close()
			if sub.written.Opaque() {
				sub.visible = nil
			}
		case errors.As(err, &stays): // as if it were not there
			sub.written = workspace.Nothing{}
		default:
			return layer.KindNone, false, err
		}
		if err := w.rules(ctx, sub); err != nil {
			return layer.KindNone, false, err
		}
		d = sub
	}
	kind, _, err := w.layers.Lookup(d.tracked, path)
	return kind, w.ignored(d, path, false), err
}

// visible returns the subset of the layers that a merged directory shows.
func (w *walker) visible(d *directory, path string) ([]int, error) {
	kind, dirs, err := w.layers.Lookup(d.visible, path)
	if err != nil || kind != layer.KindDir {
		return nil, err
	}
	return dirs, nil
}
