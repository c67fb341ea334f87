package engine

import (
	"context"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// preRun runs hooks.pre_run inside, before a run of an agent. Its changes are a
// commit of their own; when it fails the agent does not begin.
func (e *Engine) preRun(ctx context.Context, p *place, task AgentTask) error {
	command := p.config.Hooks.PreRun
	if len(command) == 0 {
		return nil
	}
	var output tail
	result, err := e.execute(ctx, p, ExecRequest{
		Name: p.record.Name, Argv: command, Kind: "hook", Message: "hooks.pre_run",
		Streams: Streams{Stdin: strings.NewReader(""), Stdout: &output, Stderr: &output}, AllowDegraded: task.AllowDegraded,
	})
	if err != nil {
		return err
	}
	if result.Exit.Code == 0 {
		p.note(result.Notes...)
		return nil
	}
	said := strings.TrimRight(output.String(), "\n")
	if said != "" {
		said = "; it said:\n" + said
	}
	return fault.New(fault.Conflict, "cannot begin a run in sandbox %q: hooks.pre_run exited %d%s", p.record.Name, result.Exit.Code, said).
		WithHint("litterbox exec %s -- %s", p.record.Name, quoteCommand(command))
}
