package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

type limitsOptions struct {
	console *console
	limits  func(context.Context, engine.LimitsRequest) (engine.Limits, error)

	request engine.LimitsRequest
	json    bool
}

func newLimits(s *session) *cobra.Command {
	o := &limitsOptions{console: s.console}
	cmd := &cobra.Command{
		Use:   "limits NAME [LIMIT=VALUE]...",
		Short: "Show or change what a sandbox may use",
		Long: `Show what a sandbox may use, where each limit comes from and who enforces it, or
change it for this sandbox alone. A change takes effect at once, without a restart.

LIMIT is one of ` + strings.Join(sandbox.LimitNames(), ", ") + `. VALUE is a
number, a size such as 4GiB, a duration such as 30m, "none", or "default" for
what the configuration says.`,
		Example: `  litterbox limits fix-login
  litterbox limits fix-login memory=4GiB cpus=2`,
		Args:              wantArgs(1, -1),
		ValidArgsFunction: s.thenComplete(completeLimit),
		RunE: s.action(func(ctx context.Context, e useCases, dir string, args []string) error {
			o.limits = e.Limits
			o.request = engine.LimitsRequest{Dir: dir, Name: args[0], Set: args[1:]}
			return runLimits(ctx, o)
		}),
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print the limits as one JSON object")
	return cmd
}

func runLimits(ctx context.Context, o *limitsOptions) error {
	view, err := o.limits(ctx, o.request)
	if err != nil {
		return err
	}
	if o.json {
		view.Limits = list(view.Limits)
		return o.console.document(view)
	}
	rows := [][]string{{"LIMIT", "VALUE", "FROM", "KEPT BY"}}
	for _, limit := range view.Limits {
		rows = append(rows, []string{limit.Name, limit.Value, limit.From, keptBy(limit, view.Running)})
	}
	if view.IdlePause > 0 {
		rows = append(rows, []string{"idle-pause", sandbox.Limits{Time: view.IdlePause}.Text(sandbox.LimitTime), "configuration", "keeper"})
	}
	return o.console.table(rows)
}

// keptBy says who enforces a limit, or that no one does.
func keptBy(limit sandbox.Limit, running bool) string {
	switch {
	case limit.Value == sandbox.None || !running:
		return "-"
	case limit.By == "":
		return "NOTHING"
	}
	return limit.By
}

// limitSummary says, in one cell, who enforces a sandbox's limits, and which are
// not enforced.
func limitSummary(limits []sandbox.Limit, state sandbox.State) string {
	if state != sandbox.Running && state != sandbox.Paused {
		return "-"
	}
	var by, lacking []string
	known := map[string]bool{}
	for _, limit := range limits {
		switch {
		case limit.Value == sandbox.None:
		case limit.By == "":
			lacking = append(lacking, limit.Name)
		case !known[limit.By]:
			known[limit.By] = true
			by = append(by, limit.By)
		}
	}
	if len(lacking) > 0 {
		by = append(by, "NOT "+strings.Join(lacking, " "))
	}
	if len(by) == 0 {
		return sandbox.None
	}
	return strings.Join(by, ", ")
}
