// Package installer is what apt-get, dnf, pacman and apk are inside a sandbox whose system
// directories are read-only: a program that asks the keeper to install packages, as
// `litterbox install` does outside. It comes first in PATH. Whatever else is asked of
// it, the system's own program does.
//
// It decides nothing: the host checks the names, and the network rules of the
// sandbox hold. Start reading at [Main].
package installer

import (
	"path/filepath"
	"slices"
)

// Dir is where the programs and the keeper's socket are inside.
const Dir = "/var/lib/litterbox/install"

// Socket is the name of the keeper's socket in Dir. A connection carries one
// wire.OpExec, whose arguments are names of packages.
const Socket = "socket"

// Failed is apt-get's exit code for every failure (apt-get(8)).
const Failed = 100

// Names are the programs in Dir, for a package manager.
func Names(manager string) []string {
	switch manager {
	case "apt":
		return []string{"apt-get", "apt"}
	case "dnf":
		return []string{"dnf", "yum"}
	}
	return []string{manager}
}

// managerOf is the package manager that a program belongs to; "" if there is none.
func managerOf(name string) string {
	for _, manager := range []string{"apt", "dnf", "pacman", "apk"} {
		if slices.Contains(Names(manager), name) {
			return manager
		}
	}
	return ""
}

// Is reports whether these arguments are those of one of the programs.
func Is(args []string) bool {
	if len(args) == 0 {
		return false
	}
	name := filepath.Base(args[0])
	return managerOf(name) != ""
}
