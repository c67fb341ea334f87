package cli

import (
	"context"
	"errors"
	"sync"

	"github.com/spf13/cobra"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

type stopOptions struct {
	console *console
	stop    func(context.Context, engine.StopRequest) (engine.StopResult, error)
	list    listing

	dir    string
	chosen selection
	yes    bool
	json   bool
}

func newStop(s *session) *cobra.Command {
	o := &stopOptions{console: s.console}
	cmd := &cobra.Command{
		Use:   "stop NAME... | --all",
		Short: "End everything that runs in a sandbox",
		Long: `End everything that runs in a sandbox. Its files and commits stay, and the next
command starts it again. The output names what was ended. On a terminal you are
asked first if something else is using it: a command or a shell of another client,
or an agent's session.

NAME may be a pattern, quoted: '*' stands for any characters, and 'worker-*' for
the workers that litterbox spawn made. Of those and of --all, only running ones are
stopped.`,
		Example: `  litterbox stop fix-login
  litterbox stop 'worker-*'`,
		Args:              wantSelection(&o.chosen),
		ValidArgsFunction: s.sandboxNames(true, ""),
		RunE: s.action(func(ctx context.Context, e useCases, dir string, args []string) error {
			o.stop, o.list, o.dir, o.chosen.names = e.Stop, e.List, dir, args
			return runStop(ctx, o)
		}),
	}
	allFlag(cmd, &o.chosen)
	cmd.Flags().BoolVar(&o.yes, "yes", false, "end shells and commands of others without asking")
	cmd.Flags().BoolVar(&o.json, "json", false, "print what was ended as a JSON object, or as an array for several")
	return cmd
}

func runStop(ctx context.Context, o *stopOptions) error {
	names := o.chosen.names
	if o.chosen.wildcard() {
		infos, err := o.chosen.pick(ctx, o.list, o.dir)
		if err != nil {
			return err
		}
		names = nil
		for _, info := range infos {
			if info.State == sandbox.Running || info.State == sandbox.Paused || info.State == sandbox.Unreachable {
				names = append(names, info.Name)
			}
		}
		if len(names) == 0 && !o.json {
			o.console.note("nothing to do: no sandbox is running")
		}
	}
	var mu sync.Mutex // questions and answers, one at a time
	results := make([]*engine.StopResult, len(names))
	err := forEach(ctx, names, eachAtOnce, func(ctx context.Context, n int, name string) error {
		r := engine.StopRequest{Dir: o.dir, Name: name}
		if o.console.canAsk() && !o.yes {
			r.ConfirmStop = func(work []engine.Work) (bool, error) {
				mu.Lock()
				defer mu.Unlock()
				return o.console.askToEnd(ctx, name, work, "End it?")
			}
		}
		result, err := o.stop(ctx, r)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		o.console.noteWork("ended", result.Ended)
		result.Ended = list(result.Ended)
		if results[n] = &result; o.json {
			return nil
		}
		return o.console.print("stopped %s\n", clean(name))
	})
	if !o.json {
		return err
	}
	stopped := []engine.StopResult{}
	for _, result := range results {
		if result != nil {
			stopped = append(stopped, *result)
		}
	}
	if o.chosen.many() {
		return errors.Join(err, o.console.document(stopped))
	}
	if err != nil {
		return err
	}
	return o.console.document(stopped[0])
}
