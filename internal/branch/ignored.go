package branch

import (
	"context"
	"io"
	"maps"
	"path/filepath"
	"slices"

	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/workspace"
)

// Written is what a sandbox has written on top of its base.
type Written struct {
	Ignored []string // by git, sorted; a directory stands for all of its content if all is ignored
	Other   []string // what a commit would take, sorted
}

// ListWritten separates what git ignores from what it does not, in all that a
// sandbox has written on top of the commit base. state is a file in a directory
// for temporary files, which need not exist.
func ListWritten(ctx context.Context, r *git.Repository, w workspace.Workspace, base, state string) (Written, error) {
	i := &importer{r: r, q: ImportRequest{Workspace: w, State: filepath.Clean(state)}, old: newDelta(base)}
	defer func() {
		if i.base.layers != nil {
			i.base.layers.Close()
		}
	}()
	drop := func(_ int64, content io.Reader) error {
		_, err := io.Copy(io.Discard, content)
		return err
	}
	s, err := i.scanner(ctx, drop)
	if err != nil {
		return Written{}, err
	}
	var found Written
	s.met = func(path string) { found.Ignored = append(found.Ignored, path) }
	s.largeFile = func([]byte) error { return nil }
	now, err := s.run(ctx)
	if err != nil {
		return Written{}, err
	}
	found.Other = slices.Sorted(maps.Keys(now.files))
	for path := range now.gone {
		if _, has := now.files[path]; !has {
			found.Other = append(found.Other, path)
		}
	}
	slices.Sort(found.Other)
	slices.Sort(found.Ignored)
	return found, nil
}
