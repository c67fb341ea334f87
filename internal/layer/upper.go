package layer

import (
	"path/filepath"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
)

// PrepareUpper puts a sandbox's own HEAD and branch into the directory that
// will receive its changes, before it is mounted for the first time. The rest
// of .git comes from the layer of [Cache.Git]: overlayfs merges directories. It
// must never be called for an upper directory that a sandbox has written to.
func PrepareUpper(upper, branch, commit string, o git.Owner) error {
	if err := git.CheckRef(branch); err != nil {
		return err
	}
	if !git.IsOid(commit) {
		return fault.New(fault.Invalid, "cannot start at %q: not an object id", commit)
	}
	files := []struct{ name, content string }{
		{".git/HEAD", "ref: " + git.Heads + branch + "\n"},
		{".git/" + git.Heads + branch, commit + "\n"},
	}
	for _, f := range files {
		dir := upper
		for _, part := range strings.Split(filepath.Dir(f.name), "/") {
			dir = filepath.Join(dir, part)
			if err := makeDir(dir); err != nil {
				return err
			}
			if err := o.Give(dir); err != nil {
				return err
			}
		}
		path := filepath.Join(upper, f.name)
		if err := writeReadable(path, []byte(f.content)); err != nil {
			return err
		}
		if err := o.Give(path); err != nil {
			return err
		}
	}
	return nil
}
