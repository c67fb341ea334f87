// Package threat is the table of the attacks that this project knows: the class
// of each, what an escape would show, which files prevent it, in which kinds of
// place it applies, and what tries it. It is data: litterbox redteam, the
// attack tests and the posture test take their entries from it and supply the
// attack's code, and the table in docs/security.md is made from it.
//
// To add an attack: 1. a row in the file of its class, 2. its code in each suite
// that the row names, 3. the page: go test ./internal/threat -update. Start
// reading at [Attack].
package threat

import (
	"slices"
	"strings"
)

// Attack is one way out. Names are those of the tests.
type Attack struct {
	Class   Class
	Name    string
	Escape  string   // what an escape would show
	Defence []string // the files that prevent it
	// Tried names the suites that try it, each with a control: one of the
	// constants below, or "directory: TestName" for a test of its own.
	Tried []string
	// Places are where the suite of attacks tries it, besides the overlay.
	Places []Place
	// Looks are the parts of a posture in which it would show.
	Looks []string
}

// The suites whose entries are compared with the table.
const (
	Redteam = "redteam"
	Attacks = "test/attack"
	Network = "test/network/attacks"
	Posture = "test/posture"
)

// Place is a kind of place that a sandbox can have instead of an overlay on the
// host's files.
type Place string

// The places.
const (
	Copy     Place = "copy"     // a copy of all files, if no overlay can be mounted
	Image    Place = "image"    // a root that is not the host's
	Degraded Place = "degraded" // Landlock alone, on the host's own file system
	Machine  Place = "machine"  // in a container, or on a host that ssh reaches
)

// All returns the table, class by class.
func All() []Attack {
	return slices.Concat(fileRows(), wayOutRows(), gitRows(), objectRows(), liveRows(), kernelRows(), processRows(), networkRows(),
		secretRows(), userRows(), resourceRows(), terminalRows(), imageRows(), toolRows())
}

// By lists the attacks that a suite tries.
func By(suite string) []Attack {
	return slices.DeleteFunc(All(), func(a Attack) bool { return !slices.Contains(a.Tried, suite) })
}

// Find returns the row of an attack of a suite. A variant comes after a colon:
// "plant: a link above a mount point" has the row "plant".
func Find(suite, name string) (Attack, bool) {
	all := By(suite)
	for {
		if i := slices.IndexFunc(all, func(a Attack) bool { return a.Name == name }); i >= 0 {
			return all[i], true
		}
		at := strings.LastIndex(name, ": ")
		if at < 0 {
			return Attack{}, false
		}
		name = name[:at]
	}
}

// Uncovered compares the names of a suite with the table: it lists the names
// without a row, and the rows of the suite without a name.
func Uncovered(suite string, names []string) (unknown, missing []string) {
	left := map[string]bool{}
	for _, a := range By(suite) {
		left[a.Name] = true
	}
	for _, name := range names {
		if a, ok := Find(suite, name); ok {
			delete(left, a.Name)
		} else {
			unknown = append(unknown, name)
		}
	}
	for _, a := range By(suite) {
		if left[a.Name] {
			missing = append(missing, a.Name)
		}
	}
	return unknown, missing
}

// rows sets the class of attacks.
func rows(class Class, all ...Attack) []Attack {
	for i := range all {
		all[i].Class = class
	}
	return all
}

// list is shorter to write than a slice of strings.
func list(all ...string) []string { return all }
