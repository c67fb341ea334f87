package stage

import (
	_ "embed"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/fsmonitor"
)

//go:embed mend-git
var mendGit []byte

// history shows the git directory of the lowest layer once more, for the script
// that restores it: a removed .git is a whiteout, which nothing inside can
// undo. It holds nothing that the workspace did not begin with.
func (a assembly) history() error {
	layers := a.config.Workspace.Layers
	source := filepath.Join(layers[len(layers)-1], ".git")
	if info, err := os.Lstat(source); err != nil || !info.IsDir() {
		return nil // a workspace without a repository
	}
	if err := a.bindReadOnly(source, fsmonitor.History, true, unix.MOUNT_ATTR_NOEXEC); err != nil {
		return err
	}
	return unforked(func() error {
		return os.WriteFile(filepath.Join(a.config.Root, fsmonitor.Mend), mendGit, 0o755)
	})
}
