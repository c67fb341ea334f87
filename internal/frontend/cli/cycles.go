package cli

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

type cyclesOptions struct {
	console *console
	cycles  func(ctx context.Context, dir, name string) ([]sandbox.Cycle, error)

	dir, name string
	json      bool
}

func newCycles(s *session) *cobra.Command {
	o := &cyclesOptions{console: s.console}
	cmd := &cobra.Command{
		Use:   "cycles NAME",
		Short: "List the runs of a sandbox and where each is",
		Long: `List the runs of a sandbox, the latest first: the command, its progress or outcome,
and the policy revision that was in force.`,
		Example: `  litterbox cycles fix-login
  litterbox cycles fix-login --json`,
		Args:              wantArgs(1, 1),
		ValidArgsFunction: s.sandboxNames(false, ""),
		RunE: s.action(func(ctx context.Context, e useCases, dir string, args []string) error {
			o.cycles, o.dir, o.name = e.Cycles, dir, args[0]
			return runCycles(ctx, o)
		}),
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print a JSON array, the first run first")
	return cmd
}

func runCycles(ctx context.Context, o *cyclesOptions) error {
	cycles, err := o.cycles(ctx, o.dir, o.name)
	if err != nil {
		return err
	}
	if o.json {
		return o.console.document(list(cycles))
	}
	if len(cycles) == 0 {
		o.console.note("nothing ran in %s yet; try: litterbox exec %s -- CMD", o.name, o.name)
		return nil
	}
	rows := [][]string{{"CYCLE", "KIND", "STATE", "RESULT", "POLICY", "TOOK", "WHEN", "COMMAND"}}
	for _, cycle := range slices.Backward(cycles) {
		result, duration := "", o.console.now().Sub(cycle.StartedAt)
		switch {
		case cycle.State == sandbox.CycleFailed:
			result = cycle.Problem
		case cycle.State.Terminal():
			result = ending(cycle.ExitCode, "", cycle.TimedOut)
		}
		if cycle.State.Terminal() {
			duration = cycle.CompletedAt.Sub(cycle.StartedAt)
		}
		rows = append(rows, []string{
			decimal(cycle.ID), cycle.Kind, string(cycle.State), result, decimal(cycle.Policy), took(duration),
			ago(o.console.now(), cycle.StartedAt), cycle.Command,
		})
	}
	return o.console.table(rows)
}
