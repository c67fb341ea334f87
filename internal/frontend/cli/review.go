package cli

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// shownMost is how much of a configuration is shown before a question.
const shownMost = 64 << 10

// review lists the requests of a repository's configuration that do not count, and
// offers to look at it and to trust it where a person is there to answer.
func (c *console) review(ctx context.Context, untrusted engine.Untrusted) (bool, error) {
	for _, ask := range untrusted.Asks {
		c.note("%s", ask)
	}
	if !c.canAsk() {
		return false, nil
	}
	for {
		answer, err := c.answer(ctx, "Trust "+untrusted.Path+" as it is now? [y/N/show]")
		if err != nil {
			return false, err
		}
		switch answer {
		case "y", "yes":
			return true, nil
		case "s", "show":
			if err := c.showFile(untrusted.Path); err != nil {
				return false, err
			}
		default:
			return false, nil
		}
	}
}

func (c *console) showFile(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot show %q", path)
	}
	cut := len(content) > shownMost
	if cut {
		content = content[:shownMost]
	}
	for line := range strings.Lines(string(content)) {
		fmt.Fprintf(c.stderr, "  %s\n", clean(strings.TrimRight(line, "\r\n")))
	}
	if cut {
		fmt.Fprintln(c.stderr, "  … and more")
	}
	return nil
}
