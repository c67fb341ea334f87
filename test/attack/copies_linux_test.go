package attack_test

import (
	"slices"
	"testing"
)

// Where no overlay can be mounted a sandbox has a copy of all files; the walls
// are the same. The controls have run in TestAttacks.
func TestAttacksOnCopies(t *testing.T) {
	for _, a := range slices.Concat(fileAttacks(), stateAttacks(), lockedAttacks(), gitAttacks(), plantAttacks()) {
		if a.Overlay {
			continue
		}
		t.Run(a.Name, func(t *testing.T) {
			w := newWorld(t)
			w.Host = w.With("LITTERBOX_WORKSPACE=copy")
			a.Run(w)
		})
	}
}
