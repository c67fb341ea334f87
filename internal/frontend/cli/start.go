package cli

import (
	"context"

	"github.com/spf13/cobra"
)

type startOptions struct {
	console *console
	start   func(ctx context.Context, dir, name string, allowDegraded bool) ([]string, error)

	dir, name     string
	allowDegraded bool
}

func newStart(s *session) *cobra.Command {
	o := &startOptions{console: s.console}
	cmd := &cobra.Command{
		Use:   "start NAME",
		Short: "Start a stopped sandbox",
		Long: `Start a stopped sandbox, so that the next command need not wait. exec, run,
shell, read and write start it by themselves.`,
		Example:           "  litterbox start fix-login",
		Args:              wantArgs(1, 1),
		ValidArgsFunction: s.sandboxNames(false, ""),
		RunE: s.action(func(ctx context.Context, e useCases, dir string, args []string) error {
			o.start, o.dir, o.name = e.Start, dir, args[0]
			return runStart(ctx, o)
		}),
	}
	allowDegradedFlag(cmd, &o.allowDegraded)
	return cmd
}

func runStart(ctx context.Context, o *startOptions) error {
	notes, err := o.start(ctx, o.dir, o.name, o.allowDegraded)
	if err != nil {
		return err
	}
	o.console.notes(notes)
	return o.console.print("started %s\n", clean(o.name))
}
