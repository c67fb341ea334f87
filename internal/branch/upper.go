package branch

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// PrepareUpper puts a sandbox's own HEAD and branch into the directory that
// will receive its changes, before it is mounted for the first time. The rest
// of .git comes from the layer of [Cache.Git]: overlayfs merges directories.
// It must never be called for an upper directory that a sandbox has written.
func PrepareUpper(upper, branch, commit string, o Owner) error {
	if err := checkRef(branch); err != nil {
		return err
	}
	if !isOid(commit) {
		return fault.New(fault.Invalid, "cannot start at %q: not an object id", commit)
	}
	files := []struct{ name, content string }{
		{".git/HEAD", "ref: " + heads + branch + "\n"},
		{".git/" + heads + branch, commit + "\n"},
	}
	for _, f := range files {
		dir := upper
		for _, part := range strings.Split(filepath.Dir(f.name), "/") {
			dir = filepath.Join(dir, part)
			if err := makeDir(dir); err != nil {
				return err
			}
			if err := o.give(dir); err != nil {
				return err
			}
		}
		path := filepath.Join(upper, f.name)
		if err := writeReadable(path, []byte(f.content)); err != nil {
			return err
		}
		if err := o.give(path); err != nil {
			return err
		}
	}
	return nil
}

// give changes the owner of one file where the layers' files have one.
func (o Owner) give(path string) error {
	if !o.Chown {
		return nil
	}
	if err := os.Lchown(path, o.UID, o.GID); err != nil {
		return fault.Wrap(fault.Denied, err, "cannot give %q to uid %d", path, o.UID)
	}
	return nil
}
