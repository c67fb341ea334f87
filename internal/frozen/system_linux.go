package frozen

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// Borrow puts the box of a place that installs packages, which has no record
// yet, on the layers of another box: none of them is removed meanwhile.
func (b Box) Borrow(from Box) error {
	r, err := from.Settled()
	if err != nil {
		return err
	}
	return (&Record{Version: version, Stack: r.Stack, Whole: b.Whole}).write(b.Dir)
}

// TakeSystem puts the box on what a finished place has installed. If the box
// runs, it still runs on what it was started with. TakeSystem fails with
// ErrMoved if the stack is no longer the one that was borrowed.
func (b Box) TakeSystem(from Box) error {
	unlock, err := lock(Store(b.Dir)) // for a moment no record names the layer
	if err != nil {
		return err
	}
	defer unlock()
	r, err := b.Settled()
	if err != nil {
		return err
	}
	borrowed, err := Read(from.Dir)
	if err != nil {
		return err
	}
	if !slices.Equal(b.systems(r.Stack), b.systems(borrowed.Stack)) {
		return ErrMoved
	}
	name := newName()
	layer := b.layer(name)
	_, parts, err := from.parts()
	if err != nil {
		return err
	}
	for _, p := range parts {
		if !IsSystem(filepath.Base(p.layer)) {
			continue
		}
		if used, err := hasEntries(filepath.Join(from.Dir, p.name)); err != nil || !used {
			if err != nil {
				return err
			}
			continue
		}
		to := filepath.Join(layer+partial, p.layer)
		err := os.MkdirAll(filepath.Dir(to), 0o700)
		if err == nil {
			err = moveDirectory(filepath.Join(from.Dir, p.name), to)
		}
		if err != nil {
			return fault.Wrap(fault.Unavailable, err, "cannot keep the installed packages")
		}
	}
	if !exists(layer + partial) {
		return nil // nothing was installed
	}
	if err := os.Rename(layer+partial, layer); err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot keep the installed packages")
	}
	r.Stack = append([]string{name}, r.Stack...)
	return r.write(b.Dir)
}

// systems returns the layers of a stack in which packages were installed.
func (b Box) systems(stack []string) []string {
	var found []string
	for _, name := range stack {
		entries, _ := os.ReadDir(filepath.Join(b.layer(name), caches)) // most have none
		if slices.ContainsFunc(entries, func(e os.DirEntry) bool { return IsSystem(e.Name()) }) {
			found = append(found, name)
		}
	}
	return found
}
