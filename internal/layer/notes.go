package layer

import (
	"fmt"
	"slices"
)

const maxNotes = 40

// Notes are sentences for the user about what was left out; a hostile sandbox
// cannot flood them.
type Notes struct {
	lines   []string
	dropped int
}

func (n *Notes) Add(format string, args ...any) {
	if len(n.lines) >= maxNotes {
		n.dropped++
		return
	}
	n.lines = append(n.lines, fmt.Sprintf(format, args...))
}

func (n *Notes) List() []string {
	if n.dropped == 0 {
		return n.lines
	}
	return append(slices.Clone(n.lines), fmt.Sprintf("and %d more", n.dropped))
}
