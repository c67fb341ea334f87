package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// problem is one thing wrong with a file.
type problem struct {
	position
	text  string
	hint  string
	early bool // the key exists in the design, not in this version
}

func (p problem) Error() string {
	if p.line == 0 {
		return p.text
	}
	return fmt.Sprintf("line %d, column %d: %s", p.line, p.column, p.text)
}

// shown is how many problems one error names; a file of the wrong kind has
// thousands.
const shown = 20

// several prints each problem on a line of its own, with its hint.
type several []problem

func (s several) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d problems", len(s))
	for i, p := range s {
		if i == shown {
			fmt.Fprintf(&b, "\n  and %d more", len(s)-shown)
			break
		}
		b.WriteString("\n  " + p.Error())
		if p.hint != "" {
			b.WriteString(" (" + p.hint + ")")
		}
	}
	return b.String()
}

// unreadable is the error for a file with problems.
func unreadable(file string, problems []problem) error {
	kind := fault.Unsupported
	if slices.ContainsFunc(problems, func(p problem) bool { return !p.early }) {
		kind = fault.Invalid
	}
	if len(problems) > 1 {
		return fault.Wrap(kind, several(problems), "cannot read %s", display(file))
	}
	err := fault.Wrap(kind, problems[0], "cannot read %s", display(file))
	if problems[0].hint != "" {
		err = err.WithHint("%s", problems[0].hint)
	}
	return err
}

// display quotes a path only where it needs it: a directory name may hold
// terminal escapes.
func display(path string) string {
	if quoted := strconv.Quote(path); quoted != `"`+path+`"` {
		return quoted
	}
	return path
}
