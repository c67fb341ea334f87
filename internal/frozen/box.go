package frozen

import "path/filepath"

// Box is what one sandbox writes.
type Box struct {
	Dir   string // of the sandbox
	Owner Owner  // of what it writes, on disk
	// Whole is set where its files are a copy of everything, which nothing shows
	// through: then there is no stack, and layers are copied back.
	Whole bool
}

// Owner of files on disk; -1 means whoever runs this program.
type Owner struct{ UID, GID int }

// MaxStack is how many layers a sandbox stands on at most. What comes above
// them is joined with them first.
const MaxStack = 24

func (b Box) layer(name string) string { return filepath.Join(Store(b.Dir), name) }

// partial ends the name of a layer that is being copied.
const partial = ".partial"
