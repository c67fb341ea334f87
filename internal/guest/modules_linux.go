package guest

import (
	"os"
	"path/filepath"

	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// module reports where a submodule of the workspace stands, and whether
// anything in it is not committed. Without a .git of its own it is not one: git
// there would answer for the repository above.
func (g *guest) module(x *exchange) (wire.Module, error) {
	dir := x.request.Path
	at, err := g.path(dir)
	if err != nil {
		return wire.Module{}, err
	}
	if info, err := os.Lstat(filepath.Join(at, ".git")); err != nil || !info.IsDir() && !info.Mode().IsRegular() {
		return wire.Module{}, nil
	}
	head, err := g.askHeadOf(dir)
	if err != nil || head.Commit == "" {
		return wire.Module{}, err
	}
	changed, err := g.gitLine(dir, "status", "--porcelain", "--ignore-submodules=all")
	return wire.Module{Head: head, Changed: changed != ""}, err
}
