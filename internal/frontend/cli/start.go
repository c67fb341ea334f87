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
	noWait        bool
	await         awaiting
}

func newStart(s *session) *cobra.Command {
	o := &startOptions{console: s.console}
	cmd := &cobra.Command{
		Use:   "start NAME",
		Short: "Start a stopped sandbox",
		Long: `Start a stopped sandbox, so that the next command need not wait. exec, run,
shell, read and write start it by themselves. Services that say when they are
ready are waited for; when one fails, the end of its log is shown and the exit
code is 8.`,
		Example:           "  litterbox start fix-login",
		Args:              wantArgs(1, 1),
		ValidArgsFunction: s.sandboxNames(false, ""),
		RunE: s.action(func(ctx context.Context, e useCases, dir string, args []string) error {
			o.start, o.await, o.dir, o.name = e.Start, e.AwaitServices, dir, args[0]
			return runStart(ctx, o)
		}),
	}
	cmd.Flags().BoolVar(&o.noWait, "no-wait", false, "do not wait for services to be ready")
	allowDegradedFlag(cmd, &o.allowDegraded)
	return cmd
}

func runStart(ctx context.Context, o *startOptions) error {
	notes, err := o.start(ctx, o.dir, o.name, o.allowDegraded)
	if err != nil {
		return err
	}
	o.console.notes(notes)
	if err := o.console.print("started %s\n", clean(o.name)); err != nil || o.noWait {
		return err
	}
	return o.console.awaitServices(ctx, o.await, o.dir, o.name)
}
