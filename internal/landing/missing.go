package landing

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
)

// Missing returns the first path that neither the checkout nor one of the commits
// has; "" when each is somewhere.
func Missing(ctx context.Context, r *git.Repository, commits, paths []string) (string, error) {
	root, err := os.OpenRoot(r.Top)
	if err != nil {
		return "", fault.Wrap(fault.Unavailable, err, "cannot open %q", r.Top)
	}
	defer root.Close()
	for _, path := range paths {
		if path == "" {
			continue // the top
		}
		// Anything but its absence means that it is there, or cannot be told.
		if _, err := root.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		known := false
		for _, commit := range commits {
			there, err := treeOf(ctx, r, commit)
			if err != nil {
				return "", err
			}
			for name := range there {
				known = known || Below(name, []string{path})
			}
		}
		if !known {
			return path, nil
		}
	}
	return "", nil
}
