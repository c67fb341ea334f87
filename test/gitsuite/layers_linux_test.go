package gitsuite_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/frozen"
)

// The sandboxes in which the suite runs: one as it was created, one that stands
// on many frozen layers, and one whose layers were joined.
const (
	plain   = "suite"
	stacked = "stacked"
	joined  = "joined"
)

// many is how many layers a sandbox stands on.
const many = 13

// boxes are the sandboxes in which a script runs.
func boxes(name string) []string {
	switch os.Getenv("LITTERBOX_GIT_SUITE") {
	case "", "quick":
		for _, pattern := range layered {
			if match, err := filepath.Match(pattern, name); err != nil || match {
				return []string{plain, stacked, joined}
			}
		}
		return []string{plain}
	}
	return []string{plain, stacked, joined}
}

// spread puts a share of the suite's files into the sandbox's own layer, and
// makes directories again that hide those below them.
const spread = `cd t && n=0 && for f in *; do
	n=$((n + 1)); test $((n % 13)) = $(($1 % 13)) || continue
	cp -a "$f" "../again" && rm -rf "$f" && mv ../again "$f"
done`

// layers makes the sandboxes that stand on layers.
func (s *suite) layers(t *testing.T) {
	t.Helper()
	for box, rounds := range map[string]int{stacked: many, joined: frozen.MaxStack + 1} {
		s.host.Must("create", box)
		s.host.Stack(box, rounds, spread)
		switch on := s.host.Layers(box); {
		case box == stacked && on < many, box == joined && on > 2:
			t.Fatalf("%s stands on %d layers", box, on)
		}
	}
}
