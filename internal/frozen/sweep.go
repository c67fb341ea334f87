package frozen

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/hostile"
)

// lockName is the lock of a store. It is held while a record is made of layers
// that another record names, and while layers are removed that no record names.
const lockName = "lock"

// Unused lists the layers of a store that no record of holders names. holders
// lists the directories of all sandboxes, including deleted ones whose files
// are kept; it is called after the layers were listed.
func Unused(store string, holders func() ([]string, error)) ([]string, error) {
	entries, err := os.ReadDir(store)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "cannot list %q", store)
	}
	dirs, err := holders()
	if err != nil {
		return nil, err
	}
	needed := map[string]bool{lockName: true}
	for _, dir := range dirs {
		r, err := Read(dir)
		if err == nil && !exists(dir) {
			err = fault.New(fault.Conflict, "cannot tell what a sandbox needs: %q has just moved", dir)
		}
		if err != nil {
			return nil, err // nothing is removed while a record is unreadable
		}
		for _, name := range r.names() {
			needed[name] = true
		}
	}
	var unused []string
	for _, entry := range entries {
		if !needed[strings.TrimSuffix(entry.Name(), partial)] {
			unused = append(unused, entry.Name())
		}
	}
	return unused, nil
}

// Sweep removes what Unused lists.
func Sweep(store string, holders func() ([]string, error)) error {
	if !exists(store) {
		return nil
	}
	unlock, err := lock(store)
	if err != nil {
		return err
	}
	defer unlock()
	unused, err := Unused(store, holders)
	if err != nil {
		return err
	}
	var problems []error
	for _, name := range unused {
		if err := hostile.Remove(filepath.Join(store, name)); err != nil {
			problems = append(problems, fault.Wrap(fault.Unavailable, err, "cannot remove the layer %q", name))
		}
	}
	return errors.Join(problems...)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func itoa(n int) string { return strconv.Itoa(n) }
