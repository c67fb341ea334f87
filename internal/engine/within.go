package engine

import (
	"path/filepath"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/git"
)

// Within is the part of dir below the top of its checkout, with slashes: where a
// user is in the project, and so where their commands work inside. It is empty at
// the top and outside of a checkout.
func (e *Engine) Within(dir string) string {
	location, ok := git.Locate(dir)
	if !ok {
		return ""
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return ""
	}
	below, err := filepath.Rel(location.Top, real)
	if err != nil || below == "." || below == ".git" || strings.HasPrefix(below, ".git/") || strings.HasPrefix(below, "..") {
		return ""
	}
	return filepath.ToSlash(below)
}
