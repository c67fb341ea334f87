package engine

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/frozen"
	"github.com/litterbox-sandbox/litterbox/internal/store"
)

// frozenHolders lists the directories of all sandboxes that may use frozen
// layers. Deleted ones come before and after live ones: one that is being deleted
// or restored is in one of the lists.
func (e *Engine) frozenHolders() ([]string, error) {
	var dirs []string
	for _, s := range []*store.Store{e.Store.Trash(), e.Store, e.Store.Trash()} {
		parent := filepath.Dir(s.SandboxDir("x"))
		entries, err := os.ReadDir(parent)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fault.Wrap(fault.Unavailable, err, "cannot list %q", parent)
		}
		for _, entry := range entries {
			if dir := filepath.Join(parent, entry.Name()); !slices.Contains(dirs, dir) {
				dirs = append(dirs, dir)
			}
		}
	}
	entries, err := os.ReadDir(e.goldensDir())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Wrap(fault.Unavailable, err, "cannot list %q", e.goldensDir())
	}
	for _, entry := range entries {
		dirs = append(dirs, filepath.Join(e.goldensDir(), entry.Name()))
	}
	return dirs, nil
}

// frozenStore is where the frozen layers of all sandboxes lie.
func (e *Engine) frozenStore() string { return frozen.Store(e.Store.SandboxDir("x")) }

// sweepFrozen removes the frozen layers that no sandbox and no snapshot needs.
// While a sandbox moves into or out of the trash, nothing goes.
func (e *Engine) sweepFrozen() error {
	err := frozen.Sweep(e.frozenStore(), e.frozenHolders)
	if fault.KindOf(err) == fault.Conflict {
		return nil
	}
	return err
}

// frozenSize is the size of the frozen layers that some sandboxes need, or of all.
func (e *Engine) frozenSize(infos []Info, all bool) (int64, error) {
	counted := inodes{}
	if all {
		return counted.size(e.frozenStore()), nil
	}
	var total int64
	for _, info := range infos {
		names, err := frozen.Needed(e.Store.SandboxDir(info.ID))
		if err != nil {
			return 0, err
		}
		for _, name := range names {
			total += counted.size(filepath.Join(e.frozenStore(), name))
		}
	}
	return total, nil
}
