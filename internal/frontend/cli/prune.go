package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

type pruneOptions struct {
	console *console
	prune   func(context.Context, engine.PruneRequest) ([]engine.Pruned, error)

	request engine.PruneRequest
	yes     bool
	json    bool
}

func newPrune(s *session) *cobra.Command {
	o := &pruneOptions{console: s.console}
	cmd := &cobra.Command{
		Use:   "prune [--dry-run]",
		Short: "Remove what is unused or too old",
		Long: `Remove shared layers that no sandbox uses, and sandboxes that the section
[retention] of the configuration does not keep. It shows what would be removed and
why, and asks. Running sandboxes are never removed; unmerged work is removed only
with --force, and its last commit stays in the trash of the repository. Files of
deleted sandboxes that have been in the trash for longer than retention.trash are
removed too; their last commits stay until litterbox trash empty. --all also removes
goldens whose repository is gone, and containers and volumes of Docker and Podman
that litterbox made and that hold no sandbox; images stay with the engine. Nothing is
ever removed automatically.`,
		Example: `  litterbox prune --dry-run
  litterbox prune --yes --all`,
		Args:              wantArgs(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: s.action(func(ctx context.Context, e useCases, dir string, _ []string) error {
			o.prune, o.request.Dir = e.Prune, dir
			return runPrune(ctx, o)
		}),
	}
	cmd.Flags().BoolVar(&o.request.All, "all", false, "include all repositories")
	cmd.Flags().BoolVar(&o.request.DryRun, "dry-run", false, "only show what would go")
	cmd.Flags().BoolVar(&o.request.Force, "force", false, "also sandboxes with work that is not merged")
	cmd.Flags().BoolVar(&o.yes, "yes", false, "do not ask")
	cmd.Flags().BoolVar(&o.json, "json", false, "print a JSON array; sizes are in bytes")
	return cmd
}

func runPrune(ctx context.Context, o *pruneOptions) error {
	shown := false
	if !o.yes {
		o.request.Confirm = func(plan []engine.Pruned) (bool, error) {
			if !o.console.canAsk() {
				return false, fault.New(fault.Denied, "pruning needs confirmation").
					WithHint("litterbox prune --dry-run, then litterbox prune --yes")
			}
			if err := showPlan(o.console, plan); err != nil {
				return false, err
			}
			shown = true
			return o.console.ask(ctx, "Clear them away?")
		}
	}
	plan, err := o.prune(ctx, o.request)
	if err != nil {
		return err
	}
	if o.json {
		return o.console.document(list(plan))
	}
	if !shown {
		if err := showPlan(o.console, plan); err != nil {
			return err
		}
	}
	freed, gone := int64(0), 0
	for _, one := range plan {
		if one.Kept == "" {
			freed, gone = freed+one.Bytes, gone+1
		}
	}
	verb := "cleared away"
	if o.request.DryRun {
		verb = "would clear away"
	}
	return o.console.print("%s %s, %s\n", verb, count(gone, "item"), amount(freed))
}

func showPlan(c *console, plan []engine.Pruned) error {
	if len(plan) == 0 {
		return nil
	}
	rows := [][]string{{"WHAT", "SIZE", "WHY", "STAYS BECAUSE"}}
	for _, one := range plan {
		name := one.Name
		if len(name) > 48 {
			name = fmt.Sprintf("%s…", name[:47])
		}
		rows = append(rows, []string{one.Kind + " " + name, amount(one.Bytes), one.Why, one.Kept})
	}
	return c.table(rows)
}
