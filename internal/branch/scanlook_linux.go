package branch

import (
	"os"

	"github.com/litterbox-sandbox/litterbox/internal/layer"
	"golang.org/x/sys/unix"
)

// isRepository tells whether a directory is the work tree of a repository of
// its own, by what git looks for (setup.c, is_git_directory).
func isRepository(d *os.File) bool {
	st, err := layer.StatAt(d, ".git")
	if err != nil {
		return false
	}
	if st.Mode&unix.S_IFMT == unix.S_IFREG {
		return true
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return false
	}
	r := layer.Root{Dir: d}
	g, err := r.Open(".git", unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return false
	}
	defer g.Close()
	for _, name := range []string{"HEAD", "objects", "refs"} {
		if _, err := layer.StatAt(g, name); err != nil {
			return false
		}
	}
	return true
}

// release forgets what the agent's own commits stopped tracking (git rm
// --cached), as far as it is ignored: git would not add it again.
func (w *walker) release(top *directory) error {
	for path := range w.old.released {
		kind, ignored, err := w.look(top, path)
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

// look walks down to a path, to tell what the layers have there and whether it
// is ignored.
func (w *walker) look(d *directory, path string) (layer.Kind, bool, error) {
	for i := range len(path) {
		if path[i] != '/' {
			continue
		}
		dir := path[:i]
		sub := &directory{path: dir, ignored: w.ignored(d, dir, true), ignore: d.ignore, attributes: d.attributes}
		var err error
		if _, sub.tracked, err = w.layers.Lookup(d.tracked, dir); err != nil {
			return layer.KindNone, false, err
		}
		if sub.visible, err = w.visible(d, dir); err != nil {
			return layer.KindNone, false, err
		}
		if f, err := w.upper.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY); err == nil {
			opaque, err := w.overlayAttributes(f)
			_ = f.Close()
			if err != nil {
				return layer.KindNone, false, err
			}
			if opaque {
				sub.visible = nil
			}
		}
		if err := w.rules(sub); err != nil {
			return layer.KindNone, false, err
		}
		d = sub
	}
	kind, _, err := w.layers.Lookup(d.tracked, path)
	return kind, w.ignored(d, path, false), err
}

// visible is the subset of the layers that a merged directory shows.
func (w *walker) visible(d *directory, path string) ([]int, error) {
	kind, dirs, err := w.layers.Lookup(d.visible, path)
	if err != nil || kind != layer.KindDir {
		return nil, err
	}
	return dirs, nil
}
