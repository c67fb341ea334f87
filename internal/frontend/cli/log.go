package cli

import (
	"cmp"
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

type logOptions struct {
	console *console
	log     func(ctx context.Context, dir, name string) ([]sandbox.Iteration, error)

	dir, name string
	json      bool
	most      int
	oneline   bool
}

func newLog(s *session) *cobra.Command {
	o := &logOptions{console: s.console}
	cmd := &cobra.Command{
		Use:   "log NAME",
		Short: "Show what was done in a sandbox, step by step",
		Long: `Show what was done in a sandbox, the latest step first: its commit, how it ended,
how many files it changed.`,
		Example: `  litterbox log fix-login
  litterbox log fix-login -n 5 --oneline`,
		Args:              wantArgs(1, 1),
		ValidArgsFunction: s.sandboxNames(false, ""),
		RunE: s.action(func(ctx context.Context, e useCases, dir string, args []string) error {
			if o.most < 0 {
				return fault.New(fault.Invalid, "cannot show %d steps", o.most).WithHint("litterbox log %s -n 10", args[0])
			}
			o.log, o.dir, o.name = e.Log, dir, args[0]
			return runLog(ctx, o)
		}),
	}
	cmd.Flags().IntVarP(&o.most, "number", "n", 0, "show the last `N` steps only")
	cmd.Flags().BoolVar(&o.oneline, "oneline", false, "print each step as its number, its commit and its message")
	cmd.Flags().BoolVar(&o.json, "json", false, "print a JSON array, the first step first")
	return cmd
}

func runLog(ctx context.Context, o *logOptions) error {
	iterations, err := o.log(ctx, o.dir, o.name)
	if err != nil {
		return err
	}
	iterations = slices.Clone(iterations)
	slices.SortStableFunc(iterations, func(a, b sandbox.Iteration) int { return cmp.Compare(a.Number, b.Number) })
	if o.most > 0 {
		iterations = iterations[max(0, len(iterations)-o.most):]
	}
	if o.json {
		return o.console.document(list(iterations))
	}
	if len(iterations) == 0 {
		o.console.note("nothing was done in %s yet; try: litterbox exec %s -- CMD", o.name, o.name)
		return nil
	}
	if o.oneline {
		for _, it := range slices.Backward(iterations) {
			if err := o.console.print("%d %s %s\n", it.Number, short(it.Commit), clean(it.Message)); err != nil {
				return err
			}
		}
		return nil
	}
	costs := slices.ContainsFunc(iterations, func(it sandbox.Iteration) bool { return it.Cost > 0 })
	title := []string{"STEP", "COMMIT", "KIND", "RESULT", "CHANGED", "TOOK", "WHEN"}
	if costs {
		title = append(title, "COST SO FAR")
	}
	rows := [][]string{append(title, "MESSAGE")}
	for _, it := range slices.Backward(iterations) {
		row := []string{
			decimal(it.Number), short(it.Commit), it.Kind, ending(it.ExitCode, it.Signal, it.TimedOut), decimal(it.Changed),
			took(it.Duration), ago(o.console.now(), it.StartedAt),
		}
		if costs && it.Cost > 0 {
			row = append(row, engine.Money(it.Cost).String())
		} else if costs {
			row = append(row, "-")
		}
		rows = append(rows, append(row, it.Message))
	}
	return o.console.table(rows)
}
