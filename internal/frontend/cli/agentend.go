package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// concluded reports the result of a run.
func (o *agentRunOptions) concluded(ctx context.Context, run engine.Run) error {
	if o.json {
		return o.console.jsonLine(startedDocument{"ended", run})
	}
	if err := o.console.table(runTable(run)); err != nil {
		return err
	}
	o.console.notes(run.Notes)
	refused, err := o.e.Refused(context.WithoutCancel(ctx), engine.Place{Dir: o.dir, Name: run.Sandbox}, run.StartedAt)
	if err != nil {
		return nil // deleted meanwhile: nothing can be opened for it
	}
	o.console.noteRefused(run.Sandbox, engine.Unexpected(run, refused))
	return nil
}

// startedDocument is the first and the last line of --json.
type startedDocument struct {
	Kind string     `json:"kind"`
	Run  engine.Run `json:"run"`
}

// runTable is the end of a run, in rows.
func runTable(run engine.Run) [][]string {
	rows := [][]string{{"outcome", outcomeText(run)}, {"exit code", fmt.Sprint(run.ExitCode)}}
	if !run.EndedAt.IsZero() {
		rows = append(rows, []string{"duration", took(run.EndedAt.Sub(run.StartedAt))})
	}
	rows = append(rows, []string{"commits", fmt.Sprint(run.Commits)}, []string{"files", fmt.Sprint(run.Files)})
	if !run.Screen {
		rows = append(rows, []string{"commands", fmt.Sprint(run.Commands)})
	}
	if in, cached, out := tokensOf(run); in+cached+out > 0 {
		rows = append(rows, []string{"tokens", fmt.Sprintf("%d in, %d cached, %d out", in, cached, out)})
	}
	if cost := engine.CostOf(run); cost != nil {
		rows = append(rows, []string{"cost", costText(cost) + ", counted in " + counted(int(cost.Calls), "call", "calls") + " of models"})
	} else if run.CostUSD > 0 {
		rows = append(rows, []string{"cost", fmt.Sprintf("%.4f USD, as the client works it out", run.CostUSD)})
	}
	next := "next"
	add := func(command string) {
		rows = append(rows, []string{next, command})
		next = ""
	}
	if run.Deleted {
		add("litterbox trash restore " + run.Sandbox)
		return rows
	}
	if run.Commits > 0 {
		add("litterbox diff " + run.Sandbox)
		add("litterbox merge " + run.Sandbox)
	}
	if run.State != sandbox.RunCompleted {
		add("litterbox agent logs " + run.Sandbox)
	}
	add("litterbox agent resume " + run.Sandbox + " 'And now …'")
	return rows
}

// tokensOf are those that were counted, else those that the client tells.
func tokensOf(run engine.Run) (in, cached, out int64) {
	if cost := engine.CostOf(run); cost != nil {
		return cost.Input + cost.CacheWrite, cost.CacheRead, cost.Output
	}
	return run.TokensIn, run.TokensRead, run.TokensOut
}

// costCell is the cost of a run in a table.
func costCell(run engine.Run) string {
	if cost := engine.CostOf(run); cost != nil || run.CostUSD == 0 {
		return costText(cost)
	}
	return fmt.Sprintf("$%.4f", run.CostUSD)
}

func outcomeText(run engine.Run) string {
	text := strings.ReplaceAll(string(run.State), "_", " ")
	if run.Problem != "" {
		text += ": " + run.Problem
	}
	return text
}
