package frozen

import "path/filepath"

// Box is everything that one sandbox writes.
type Box struct {
	Dir   string // of the sandbox
	Owner Owner  // of the files that it writes, on disk
	// Whole is set if its files are a copy of everything, which nothing shows
	// through: then there is no stack, and layers are copied back.
	Whole bool
}

// Owner of files on disk; -1 means the user who runs this program.
type Owner struct{ UID, GID int }

// MaxStack is the most layers that a sandbox stands on. Before more come on
// top, these are joined.
const MaxStack = 24

func (b Box) layer(name string) string { return filepath.Join(Store(b.Dir), name) }

// partial is the suffix of a layer that is being copied.
const partial = ".partial"
