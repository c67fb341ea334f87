package cli

import (
	"context"
	"fmt"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
)

// askToEnd names what is at work in a sandbox and asks a question about it.
func (c *console) askToEnd(ctx context.Context, name string, work []engine.Work, question string) (bool, error) {
	c.progress.clear()
	fmt.Fprintf(c.stderr, "%s is at work:\n", clean(name))
	for _, one := range work {
		fmt.Fprintf(c.stderr, "  %s\n", clean(one.String()))
	}
	return c.ask(ctx, question)
}

// noteWork says what became of each piece of work.
func (c *console) noteWork(what string, work []engine.Work) {
	for _, one := range work {
		c.note("%s: %s", what, clean(one.String()))
	}
}
