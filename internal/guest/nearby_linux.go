package guest

import "github.com/litterbox-sandbox/litterbox/internal/wire"

// nearby sends the matches of one file with the lines around them, each line
// once.
type nearby struct {
	walk   *walk
	path   string
	lines  int // to show before and after a match
	before []wire.Match
	after  int // lines that still follow a match
}

// show sends a line that matches, or that is near one that does.
func (n *nearby) show(number int64, line []byte, at []int) error {
	switch {
	case at != nil && len(line) > 0:
		for _, one := range n.before {
			if err := n.walk.send(one); err != nil {
				return err
			}
		}
		n.before, n.after = nil, n.lines
		return n.walk.send(wire.Match{Path: []byte(n.path), Line: number, Text: around(line, at)})
	case n.lines == 0 || len(line) == 0:
		return nil
	}
	one := wire.Match{Path: []byte(n.path), Line: number, Text: around(line, []int{0, 0}), Near: true}
	if n.after > 0 {
		n.after--
		return n.walk.send(one)
	}
	if n.before = append(n.before, one); len(n.before) > n.lines {
		n.before = n.before[1:]
	}
	return nil
}
