package cli

import (
	"context"

	"github.com/spf13/cobra"
)

type stopOptions struct {
	console *console
	stop    func(ctx context.Context, dir, name string) error

	dir, name string
}

func newStop(s *session) *cobra.Command {
	o := &stopOptions{console: s.console}
	return &cobra.Command{
		Use:   "stop NAME",
		Short: "End everything that runs in a sandbox",
		Long: `End everything that runs in a sandbox. Its files and commits stay, and the next
command starts it again.`,
		Example:           "  litterbox stop fix-login",
		Args:              wantArgs(1, 1),
		ValidArgsFunction: s.sandboxNames(false, ""),
		RunE: s.action(func(ctx context.Context, e useCases, dir string, args []string) error {
			o.stop, o.dir, o.name = e.Stop, dir, args[0]
			return runStop(ctx, o)
		}),
	}
}

func runStop(ctx context.Context, o *stopOptions) error {
	if err := o.stop(ctx, o.dir, o.name); err != nil {
		return err
	}
	return o.console.print("stopped %s\n", clean(o.name))
}
