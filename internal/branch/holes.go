package branch

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/layer"
	"github.com/litterbox-sandbox/litterbox/internal/workspace"
)

// A hole costs a sandbox nothing, but costs the host the time to hash, copy
// and compress it, and the disk space. So the holes that a sandbox commits are
// bounded: not per import, where they would add up, but over everything on its
// branch (file.hollow).
//
// Content that git already holds is not growth, however it is stored on disk: git
// itself writes a large file of zeros as holes at checkout, and a copy-up by the
// kernel keeps them. A file is hollow only as far as it is larger than the committed
// version at its path, and files that vanish in an import, or become smaller,
// account for others: a rename moves its size along. A copy is growth. Hollow bytes
// never account for anything, so that no sandbox can grow a giant step by step.

// page is how many bytes of holes no one counts.
const page = 4096

// errLater says that a sparse file must wait until the vanished files are known.
var errLater = errors.New("it is sparse")

// sparse is a file that waits.
type sparse struct {
	path string
	dir  *directory
	kind layer.Kind
}

// postpone makes hollow files wait.
func (w *walker) postpone(path string) func(workspace.File) (int64, error) {
	return func(f workspace.File) (int64, error) {
		_, grows, err := w.grows(f, path)
		if err == nil && grows > 0 {
			err = errLater
		}
		return 0, err
	}
}

// grows returns how many bytes of a file are holes, and how many of those make
// it larger than the committed version.
func (w *walker) grows(f workspace.File, path string) (holes, grows int64, err error) {
	// The bytes that the disk holds are known already, and for most files that
	// is all. Fewer is not proof of holes: a compressing file system holds fewer.
	entry := f.Entry()
	if entry.Size-entry.Held <= page {
		return 0, 0, nil
	}
	holes, err = f.Holes()
	if err != nil || holes <= page {
		return 0, 0, err
	}
	held, err := w.held(path)
	return holes, min(holes, max(0, entry.Size-held)), err
}

// held returns the size of what was last committed at a path, less its hollow bytes.
func (w *walker) held(path string) (int64, error) {
	if f, ok := w.old.files[path]; ok {
		return w.heldOf(f), nil
	}
	if covered(w.old.gone, path) {
		return 0, nil
	}
	return w.layers.Size(path)
}

func (w *walker) heldOf(f layer.File) int64 {
	if f.Mode != git.ModeFile && f.Mode != git.ModeExecutable {
		return 0
	}
	if f.Size == 0 && f.Ctime == 0 { // of a rebuilt delta; no program can set a ctime
		f.Size = w.blobSize(f.Oid)
	}
	return max(0, f.Size-f.Hollow)
}

// takeSparse decides about the files that waited, in their order.
func (w *walker) takeSparse(ctx context.Context) error {
	if len(w.later) == 0 {
		return nil
	}
	freed, err := w.freed()
	if err != nil {
		return err
	}
	room := w.limits.Holes
	for _, f := range w.result.files {
		room -= f.Hollow
	}
	for _, s := range w.later { // which may have to be left out
		room -= w.old.files[s.path].Hollow
	}
	for _, s := range w.later {
		now, err := w.regular(ctx, func() (workspace.File, error) { return w.changes.File(s.path) }, s.path, s.dir, func(f workspace.File) (int64, error) {
			holes, grows, err := w.grows(f, s.path)
			moved := min(grows, freed)
			after := room + w.old.files[s.path].Hollow - (grows - moved)
			if err == nil && grows > moved && after < 0 {
				err = workspace.Stays{Why: fmt.Sprintf("it is sparse, and %d of its %d bytes are holes; to commit it, fill them (cp --sparse=never FILE COPY)", holes, f.Entry().Size)}
			}
			if err != nil {
				return 0, err
			}
			freed, room = freed-moved, after
			return grows - moved, nil
		})
		if err := w.settle(s.path, s.kind, now, err); err != nil {
			return err
		}
	}
	return nil
}

// freed adds up what was last committed and no longer exists: files that
// vanished, and what others lost in size.
func (w *walker) freed() (int64, error) {
	waiting := make(map[string]struct{}, len(w.later))
	for _, s := range w.later {
		waiting[s.path] = struct{}{}
	}
	var freed int64
	for path, f := range w.old.files {
		now, there := w.result.files[path]
		if _, waits := waiting[path]; waits || there && now.Oid == f.Oid {
			continue
		}
		freed += max(0, w.heldOf(f)-now.Size)
	}
	for path, f := range w.result.files {
		if _, known := w.old.files[path]; known {
			continue
		}
		held, err := w.held(path)
		if err != nil {
			return 0, err
		}
		freed += max(0, held-f.Size)
	}
	for path := range w.result.gone {
		if covered(w.old.gone, path) || covered(w.result.gone, parent(path)) {
			continue
		}
		names, err := w.expand(path)
		if err != nil {
			return 0, err
		}
		for _, name := range names {
			_, known := w.old.files[name]
			_, there := w.result.files[name]
			_, waits := waiting[name]
			if known || there || waits || covered(w.old.gone, name) {
				continue
			}
			held, err := w.layers.Size(name)
			if err != nil {
				return 0, err
			}
			freed += held
		}
	}
	return freed, nil
}

// parent returns the directory of a path, "" at the top.
func parent(path string) string {
	return path[:max(0, strings.LastIndexByte(path, '/'))]
}
