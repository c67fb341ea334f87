package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

type reattachOptions struct {
	console  *console
	reattach func(ctx context.Context, dir, old string) ([]engine.Reattached, error)

	dir, old string
	json     bool
}

func newReattach(s *session) *cobra.Command {
	o := &reattachOptions{console: s.console}
	cmd := &cobra.Command{
		Use:   "reattach [OLD-PATH]",
		Short: "Reattach sandboxes whose repository was moved or cloned again",
		Long: `Reattach the sandboxes of a repository that was moved, deleted or cloned again. Run
it in the repository's new directory. Without OLD-PATH it takes every sandbox that
lost its repository and whose base commit this one has; with OLD-PATH also those
whose branch is gone because another repository is at that path now. A missing
branch is made again, and the sandbox's files become a commit on it.`,
		Example: `  litterbox list --all
  litterbox reattach
  litterbox reattach ~/old/path/of/project`,
		Args: wantArgs(0, 1),
		RunE: s.action(func(ctx context.Context, e useCases, dir string, args []string) error {
			o.reattach, o.dir = e.Reattach, dir
			if len(args) > 0 {
				o.old = args[0]
			}
			return runReattach(ctx, o)
		}),
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print a JSON array")
	return cmd
}

func runReattach(ctx context.Context, o *reattachOptions) error {
	results, err := o.reattach(ctx, o.dir, o.old)
	if err != nil {
		return err
	}
	failed := 0
	for _, one := range results {
		if one.Problem != "" {
			failed++
		}
	}
	if o.json {
		err = o.console.document(list(results))
	} else {
		err = printReattached(o.console, results)
	}
	if err == nil && failed > 0 {
		return statusError(exitCode(fault.Conflict))
	}
	return err
}

func printReattached(c *console, results []engine.Reattached) error {
	for _, one := range results {
		c.notes(one.Notes)
		if one.Problem != "" {
			c.note("%s: %s", one.Name, one.Problem)
			c.note("%s: the files that it changed lie in %s", one.Name, one.Files)
			continue
		}
		if err := c.print("reattached %s on branch %s at %s\n", clean(one.Name), clean(one.Branch), short(one.Head)); err != nil {
			return err
		}
	}
	return nil
}
