// Package userland makes foundations. A foundation is a layer above the host's
// own system directories that lets a package manager work there without a right
// over any file of the host: the directories of /usr again, so that files can be
// made in them; copies of what every user can read in /etc; and the package
// manager's own records.
//
// It copies nothing that only root or a group can read, runs no program, and
// never changes the host. Start reading at [Store.Foundation]. [Above.Adopt] does
// the little of that which a directory used as an image needs.
package userland

import "github.com/litterbox-sandbox/litterbox/internal/fault"

// Store keeps foundations.
type Store struct {
	Dir   string // holds them, one directory each
	Root  string // stands for /; for tests
	Owner Owner  // of everything in them
}

// Owner of files on disk; with Chown they are given to it.
type Owner struct {
	UID, GID int
	Chown    bool
}

// Above is a layer above a root file system of this machine.
type Above struct {
	Root  string // that of the root file system
	To    string // that of the layer, which is made
	Owner Owner  // of everything in the layer
}

// noManager is the error for a host above whose userland no packages can be
// installed.
func noManager() error {
	return fault.New(fault.Unsupported, "cannot install packages: this machine's package manager is not apt, and the sandbox has no image of its own").
		WithHint(`container.base-image = "docker.io/library/debian:12"`)
}
