package cli

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"

	"github.com/spf13/cobra"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

type spawnOptions struct {
	console *console
	spawn   func(context.Context, engine.SpawnRequest) ([]engine.Spawned, error)
	await   awaiting

	request       engine.SpawnRequest
	driver        string
	allowDegraded bool
	noWait        bool
	json          bool
}

// spawnAtOnce is how many workers are made at the same time, by default.
const spawnAtOnce = 4

func newSpawn(s *session) *cobra.Command {
	o := &spawnOptions{console: s.console}
	cmd := &cobra.Command{
		Use:   "spawn COUNT [--from NAME|GOLDEN]",
		Short: "Make several identical sandboxes",
		Long: `Make several identical sandboxes, called workers, with the name of the project and a
number: app-worker-1, app-worker-2 and so on, with the lowest free numbers. Each
starts from HEAD of your checkout, as with litterbox create, or with --from from
everything that another sandbox holds, as with litterbox fork; if --from names a
golden, it works like --golden of litterbox create. litterbox status shows what
each started from: the commit, the branch, and whether your checkout had uncommitted
changes, which stay out.

--machines spreads them over machines that litterbox machine list shows: each goes
to the one with the most free memory and processors. A machine that does not
answer is left out. Forks stay where their sandbox is.

If one fails, the others are still made, and the exit code is 1. These commands
accept 'worker-*', quoted, for all workers: exec, start, stop, pause, resume,
delete. litterbox teardown deletes them.`,
		Example: `  litterbox spawn 3
  litterbox exec 'worker-*' -- make test
  litterbox spawn 5 --from fix-login
  litterbox spawn 8 --machines big,bigger`,
		Args:              wantArgs(1, 1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			count, err := strconv.Atoi(args[0])
			if err != nil || count < 1 {
				return usageError(cmd, "%q is not a number of workers", args[0])
			}
			if o.request.Parallel < 1 {
				return usageError(cmd, "--parallel must be at least 1, not %d", o.request.Parallel)
			}
			return s.action(func(ctx context.Context, e useCases, dir string, _ []string) error {
				o.spawn, o.await, o.request.Dir, o.request.Count = e.Spawn, e.AwaitServices, dir, count
				return runSpawn(ctx, o)
			})(cmd, args)
		},
	}
	cmd.Flags().StringVar(&o.request.From, "from", "", "begin with all that the sandbox or golden `NAME` holds")
	cmd.Flags().IntVar(&o.request.Parallel, "parallel", spawnAtOnce, "make `N` at a time")
	cmd.Flags().BoolVar(&o.noWait, "no-wait", false, "do not wait for services to be ready")
	cmd.Flags().BoolVar(&o.json, "json", false, "print a JSON array of the new sandboxes")
	s.driverFlag(cmd, &o.driver, chosenDriver)
	s.machinesFlag(cmd, &o.request.Machines, "spread them over the machines `NAMES`, such as big,bigger")
	allowDegradedFlag(cmd, &o.allowDegraded)
	_ = cmd.RegisterFlagCompletionFunc("from", s.complete(s.completeFrom)) // the flag exists
	return cmd
}

// completeFrom gives what workers can begin with: sandboxes, then goldens.
func (s *session) completeFrom(ctx context.Context, e useCases, dir string, _ []string, _ string) ([]string, error) {
	names, err := s.names(ctx)
	if err != nil {
		return nil, err
	}
	goldens, err := completeGolden(ctx, e, dir, nil, "")
	if err != nil {
		return names, nil //nolint:nilerr // the sandboxes are known
	}
	for _, one := range goldens {
		if !slices.Contains(names, one) { // a sandbox of the name comes first
			names = append(names, one)
		}
	}
	return names, nil
}

func runSpawn(ctx context.Context, o *spawnOptions) error {
	said := map[string]bool{} // notes that are the same for each
	output := &prefixes{console: o.console}
	var first sync.Once
	o.request.Create = func(r *engine.CreateRequest) {
		r.AllowDegraded, r.Driver, r.Output = o.allowDegraded, o.driver, output.stream(r.Name, o.console.stderr)
		first.Do(func() { // it is made alone, and its answers count for all
			r.Review = func(ctx context.Context, untrusted engine.Untrusted) (bool, error) {
				for _, ask := range untrusted.Asks {
					said[ask] = true
				}
				return o.console.review(ctx, untrusted)
			}
		})
	}
	o.request.Each = func(one engine.Spawned) {
		for _, note := range one.Notes {
			if !said[note] {
				said[note] = true
				o.console.note("%s", note)
			}
		}
		switch {
		case one.NotBegun: // the last line counts it
		case one.Err != nil:
			printError(o.console.stderr, interrupted(ctx, one.Err))
		case !o.json:
			_ = o.console.print("created %s on branch %s at %s%s\n", clean(one.Name), clean(one.Info.Branch), short(one.Info.Head), onMachine(one.Info)) // the table says it again
		}
	}
	results, err := o.spawn(ctx, o.request)
	if err = errors.Join(err, output.flush()); err != nil {
		return err
	}
	made, failed := []engine.Info{}, 0
	for _, one := range results {
		if one.Err != nil {
			failed++
			continue
		}
		one.Info.Limits = list(one.Info.Limits)
		made = append(made, one.Info)
	}
	if o.json {
		if err := o.console.document(made); err != nil {
			return err
		}
	}
	var waited error
	if !o.noWait {
		for _, info := range made {
			if info.State != sandbox.Running { // a fork starts with its first command
				continue
			}
			waited = errors.Join(waited, o.console.awaitServices(ctx, o.await, o.request.Dir, info.Name))
		}
	}
	if failed > 0 {
		waited = errors.Join(waited, fault.New(fault.Internal, "%d of %d workers could not be made", failed, len(results)))
	}
	return waited
}
