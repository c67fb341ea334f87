package guest

import (
	"errors"
	"io/fs"
	"os"
	"path"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// remove deletes files of the workspace as git does: with the directories that
// become empty.
func (g *guest) remove(paths [][]byte) (wire.Empty, error) {
	root, err := os.OpenRoot(g.Workspace)
	if err != nil {
		return wire.Empty{}, wrap(err, "cannot open %q", g.Workspace)
	}
	defer root.Close()
	for _, each := range paths {
		name, err := inside(string(each))
		if err != nil {
			return wire.Empty{}, err
		}
		if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTDIR) {
			return wire.Empty{}, wrap(err, "cannot remove %q", name)
		}
		// The first directory that still holds something ends the climb.
		for dir := path.Dir(name); dir != "." && root.Remove(dir) == nil; dir = path.Dir(dir) {
		}
	}
	return wire.Empty{}, nil
}
