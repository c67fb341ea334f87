package cli

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

type costOptions struct {
	console *console
	cost    func(context.Context, engine.CostRequest) (engine.CostReport, error)

	request engine.CostRequest
	since   string
	json    bool
}

func newCost(s *session) *cobra.Command {
	o := &costOptions{console: s.console}
	cmd := &cobra.Command{
		Use:   "cost [NAME]",
		Short: "Show what calls of language models have cost",
		Long: `Show what the calls of language models that left the sandboxes of this repository
have cost: tokens, and money by the table of prices. Deleted sandboxes count too.
Calls are counted where litterbox inspects their requests: in sandboxes with a
budget (limits.budget), under a budget for the day (cost.day-budget), with
cost.meter = true in your own configuration, and where a rule has methods or paths.`,
		Example: `  litterbox cost
  litterbox cost fix-login --by model
  litterbox cost --all --by day --since 7d`,
		Args:              wantArgs(0, 1),
		ValidArgsFunction: s.sandboxNames(false, ""),
		RunE: s.action(func(ctx context.Context, e useCases, dir string, args []string) error {
			o.cost, o.request.Dir = e.Cost, dir
			if len(args) > 0 {
				o.request.Name = args[0]
			}
			return runCost(ctx, o)
		}),
	}
	cmd.Flags().BoolVar(&o.request.All, "all", false, "include all repositories")
	cmd.Flags().StringVar(&o.since, "since", "", "only what is newer than `AGE` (90m, 24h, 7d) or a date (2026-01-31, RFC 3339)")
	cmd.Flags().StringVar(&o.request.By, "by", "", "one line for each `WHAT`: sandbox, model or day\n(default: sandbox, or model with NAME)")
	cmd.Flags().BoolVar(&o.json, "json", false, "print one JSON object; money is in billionths of a dollar")
	_ = cmd.RegisterFlagCompletionFunc("by", cobra.FixedCompletions([]string{engine.CostBySandbox, engine.CostByModel, engine.CostByDay}, cobra.ShellCompDirectiveNoFileComp)) // fails for a flag that is not there
	return cmd
}

func runCost(ctx context.Context, o *costOptions) error {
	if o.since != "" {
		since, ok := moment(o.console.now(), o.since)
		if !ok {
			return fault.New(fault.Invalid, "cannot read --since %q", o.since).WithHint("litterbox cost --since 7d")
		}
		o.request.Since = since
	}
	if o.request.By == "" {
		if o.request.By = engine.CostBySandbox; o.request.Name != "" {
			o.request.By = engine.CostByModel
		}
	}
	report, err := o.cost(ctx, o.request)
	if err != nil {
		return err
	}
	if o.json {
		report.Rows = list(report.Rows)
		return o.console.document(report)
	}
	if len(report.Rows) == 0 && report.Budget+report.DayBudget != "" {
		o.console.note("no model calls were counted")
	} else if len(report.Rows) == 0 {
		o.console.note("no model calls were counted; set a budget to count them: litterbox limits NAME budget=\"5 USD\"")
	} else if err := o.console.table(costTable(report, o.request)); err != nil {
		return err
	}
	if report.Total.Unpriced > 0 {
		o.console.note("%s tokens were used by models without a price; set one with cost.prices in your own configuration", tokenCount(report.Total.Unpriced))
	}
	if report.Total.Open > 0 {
		o.console.note("%s without a final figure, under way or cut off, may have cost up to %s more", counted(int(report.Total.Open), "call", "calls"), report.Total.OpenCost)
	}
	if report.Budget != "" {
		o.console.note("the budget of %s is %s", o.request.Name, report.Budget)
	}
	if report.DayBudget != "" {
		o.console.note("the budget of all sandboxes for a day is %s", report.DayBudget)
	}
	return nil
}

func costTable(report engine.CostReport, request engine.CostRequest) [][]string {
	head := strings.ToUpper(request.By)
	rows := [][]string{{head, "CALLS", "IN", "OUT", "CACHE READ", "CACHE WRITE", "CPU", "COST"}}
	line := func(name string, c engine.Cost) []string {
		cpu := "-"
		if c.CPU > 0 {
			cpu = took(c.CPU)
		}
		return []string{name, strconv.FormatInt(c.Calls, 10), tokenCount(c.Input), tokenCount(c.Output), tokenCount(c.CacheRead), tokenCount(c.CacheWrite), cpu, costText(&c)}
	}
	for _, row := range report.Rows {
		name := row.Sandbox
		switch request.By {
		case engine.CostByModel:
			if name = row.Model; name == "" {
				name = "-"
			}
		case engine.CostByDay:
			name = row.Day
		default:
			if request.All {
				name = row.Repository + ": " + name
			}
		}
		rows = append(rows, line(name, row.Cost))
	}
	if len(report.Rows) > 1 {
		rows = append(rows, line("total", report.Total))
	}
	return rows
}

// costText is money where there is a price, and tokens where there is none.
func costText(c *engine.Cost) string {
	switch {
	case c == nil || c.Calls == 0:
		return "-"
	case c.Unpriced > 0 && c.Cost == 0:
		return tokenCount(c.Tokens()) + " tokens"
	}
	text := c.Cost.String()
	if c.Open > 0 || c.Unpriced > 0 {
		text += "+" // more, at an unknown price
	}
	return text
}

// tokenCount is a number of tokens as people read it.
func tokenCount(n int64) string {
	switch {
	case n >= 10_000_000:
		return strconv.FormatFloat(float64(n)/1e6, 'f', 1, 64) + "M"
	case n >= 10_000:
		return strconv.FormatFloat(float64(n)/1e3, 'f', 1, 64) + "k"
	}
	return strconv.FormatInt(n, 10)
}
