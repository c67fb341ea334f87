package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
)

type stopOptions struct {
	console *console
	stop    func(context.Context, engine.StopRequest) (engine.StopResult, error)

	dir, name string
	yes       bool
	json      bool
}

func newStop(s *session) *cobra.Command {
	o := &stopOptions{console: s.console}
	cmd := &cobra.Command{
		Use:   "stop NAME",
		Short: "End everything that runs in a sandbox",
		Long: `End everything that runs in a sandbox. Its files and commits stay, and the next
command starts it again. The output names what was ended. On a terminal you are
asked first when others work in it: a command or a shell of another client, the
session of an agent.`,
		Example:           "  litterbox stop fix-login",
		Args:              wantArgs(1, 1),
		ValidArgsFunction: s.sandboxNames(false, ""),
		RunE: s.action(func(ctx context.Context, e useCases, dir string, args []string) error {
			o.stop, o.dir, o.name = e.Stop, dir, args[0]
			return runStop(ctx, o)
		}),
	}
	cmd.Flags().BoolVar(&o.yes, "yes", false, "end shells and commands of others without asking")
	cmd.Flags().BoolVar(&o.json, "json", false, "print what was ended as one JSON object")
	return cmd
}

func runStop(ctx context.Context, o *stopOptions) error {
	r := engine.StopRequest{Dir: o.dir, Name: o.name}
	if o.console.canAsk() && !o.yes {
		r.ConfirmStop = func(work []engine.Work) (bool, error) {
			return o.console.askToEnd(ctx, o.name, work, "End it?")
		}
	}
	result, err := o.stop(ctx, r)
	if err != nil {
		return err
	}
	o.console.noteWork("ended", result.Ended)
	if o.json {
		result.Ended = list(result.Ended)
		return o.console.document(result)
	}
	return o.console.print("stopped %s\n", clean(o.name))
}
