package branch

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// Share gives the quarantine of a fork the packs that this one has taken in:
// the git inside the fork has the same commits. Packs never change, so they
// are shared as links. A quarantine that does not exist yet shares nothing.
func (q Quarantine) Share(with Quarantine) error {
	cannot := func(err error) error {
		return fault.Wrap(fault.Unavailable, err, "cannot share what was taken from the git inside")
	}
	from, to := filepath.Join(q.Dir, "objects", "pack"), filepath.Join(with.Dir, "objects", "pack")
	packs, err := os.ReadDir(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = os.MkdirAll(to, 0o755)
	}
	if err != nil {
		return cannot(err)
	}
	for _, pack := range packs {
		if ext := filepath.Ext(pack.Name()); ext != ".pack" && ext != ".idx" {
			continue
		}
		if err := os.Link(filepath.Join(from, pack.Name()), filepath.Join(to, pack.Name())); err != nil && !errors.Is(err, fs.ErrExist) {
			return cannot(err)
		}
	}
	for _, name := range []string{"taken", outFile} {
		content, err := os.ReadFile(filepath.Join(q.Dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(with.Dir, name), content, 0o644)
		}
		if err != nil {
			return cannot(err)
		}
	}
	return nil
}
