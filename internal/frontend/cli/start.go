package cli

import (
	"context"
	"sync"

	"github.com/spf13/cobra"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

type startOptions struct {
	console *console
	start   func(ctx context.Context, dir, name string, allowDegraded bool) (engine.StartResult, error)
	list    listing

	dir           string
	chosen        selection
	allowDegraded bool
	noWait        bool
	await         awaiting
}

func newStart(s *session) *cobra.Command {
	o := &startOptions{console: s.console}
	cmd := &cobra.Command{
		Use:   "start NAME... | --all",
		Short: "Start a stopped sandbox",
		Long: `Start a stopped sandbox, so that the next command does not wait. exec, run, shell,
read and write start it automatically. start waits for services that have a
readiness check; when one fails, the end of its log is shown and the exit code is 8.

NAME may be a pattern, quoted: '*' stands for any characters, and 'worker-*' for
the workers that litterbox spawn made. Of those and of --all, only stopped ones
are started.`,
		Example: `  litterbox start fix-login
  litterbox start 'worker-*'`,
		Args:              wantSelection(&o.chosen),
		ValidArgsFunction: s.sandboxNames(true, ""),
		RunE: s.action(func(ctx context.Context, e useCases, dir string, args []string) error {
			o.start, o.list, o.await, o.dir, o.chosen.names = e.Start, e.List, e.AwaitServices, dir, args
			return runStart(ctx, o)
		}),
	}
	allFlag(cmd, &o.chosen)
	cmd.Flags().BoolVar(&o.noWait, "no-wait", false, "do not wait for services to be ready")
	allowDegradedFlag(cmd, &o.allowDegraded)
	return cmd
}

func runStart(ctx context.Context, o *startOptions) error {
	names := o.chosen.names
	if o.chosen.wildcard() {
		infos, err := o.chosen.pick(ctx, o.list, o.dir)
		if err != nil {
			return err
		}
		names = nil
		for _, info := range infos {
			if info.State == sandbox.Stopped {
				names = append(names, info.Name)
			}
		}
		if len(names) == 0 {
			o.console.note("nothing to do: no sandbox is stopped")
		}
	}
	var mu sync.Mutex // keeps the lines about one together
	return forEach(ctx, names, eachAtOnce, func(ctx context.Context, _ int, name string) error {
		started, err := o.start(ctx, o.dir, name, o.allowDegraded)
		if err != nil {
			return err
		}
		mu.Lock()
		o.console.notes(started.Notes)
		if started.Already {
			err = o.console.print("%s is running already\n", clean(name))
		} else {
			err = o.console.print("started %s\n", clean(name))
		}
		mu.Unlock()
		if err != nil || o.noWait {
			return err
		}
		return o.console.awaitServices(ctx, o.await, o.dir, name)
	})
}
