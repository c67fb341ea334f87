package store

import (
	"cmp"
	"os"
	"path/filepath"
)

// Environments is where live environments are: a state directory of the same
// layout, below this one. So no command for sandboxes, their branches and their
// commits ever meets one. Trust and the audit log are those of this state directory
// (Shared).
func (s *Store) Environments() (*Store, error) {
	root := filepath.Join(s.Root, "environments")
	if err := os.Mkdir(root, 0o700); err != nil && !os.IsExist(err) {
		return nil, unavailable(err, "make %q", root)
	}
	return &Store{Root: root, Before: s.Before, Looked: s.Looked, shared: s.Shared(), strict: s.strict, known: s.known}, nil
}

// Shared is the state directory of the user, which holds this one or is it.
func (s *Store) Shared() string { return cmp.Or(s.shared, s.Root) }
