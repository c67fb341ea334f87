package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

type agentLogsOptions struct {
	agentRunOptions
	followIt bool
	raw      bool
	number   int
}

func newAgentLogs(s *session) *cobra.Command {
	o := &agentLogsOptions{agentRunOptions: agentRunOptions{console: s.console}}
	cmd := &cobra.Command{
		Use:   "logs NAME",
		Short: "Show what an agent said and did",
		Long: `Show the transcript of the last run in a sandbox: what the agent said, which
commands it ran and which files it changed. Transcripts stay when the sandbox is
deleted; litterbox prune removes them after the time that retention sets.`,
		Example: `  litterbox agent logs fix-flaky-login --follow
  litterbox agent logs fix-flaky-login --run 1 --raw`,
		Args:              wantArgs(1, 1),
		ValidArgsFunction: s.complete(completeRuns(true)),
		RunE: s.action(func(ctx context.Context, e useCases, dir string, args []string) error {
			o.e, o.dir = e, dir
			return runAgentLogs(ctx, o, args[0])
		}),
	}
	f := cmd.Flags()
	f.BoolVarP(&o.followIt, "follow", "f", false, "follow until the run ends")
	f.BoolVar(&o.raw, "raw", false, "print what the client printed, unchanged")
	f.IntVar(&o.number, "run", 0, "show the run `N` instead of the last")
	f.BoolVar(&o.json, "json", false, "print events, each as one line of JSON")
	return cmd
}

func runAgentLogs(ctx context.Context, o *agentLogsOptions, name string) error {
	run, err := o.e.LastRun(ctx, o.dir, name)
	if err != nil {
		return err
	}
	if o.number != 0 && o.number != run.Number {
		runs, err := o.e.Runs(ctx, o.dir, name)
		if err != nil {
			return err
		}
		found := false
		for _, one := range runs {
			if one.Number == o.number && one.SandboxID == run.SandboxID {
				run, found = one, true
			}
		}
		if !found {
			return fault.New(fault.NotFound, "sandbox %q has no run %d", name, o.number).WithHint("litterbox agent logs %s", name)
		}
	}
	if run.Screen && o.followIt && !run.State.Over() {
		o.console.note("what follows is a full-screen interface; to see it: litterbox agent attach %s", run.Sandbox)
	}
	if o.raw || run.Screen && !o.json {
		return o.e.RunOutput(run, output(o.console, o.raw))
	}
	show := newTranscript(o.console, run, "", o.json)
	run, err = o.e.FollowAgent(ctx, run, o.followIt, show.line)
	if err != nil || !run.State.Over() {
		return err
	}
	if o.json {
		return o.console.jsonLine(startedDocument{"ended", run})
	}
	return o.console.print("%s\n", clean(outcomeText(run)))
}

// output receives what a client printed: a terminal gets nothing that it would
// obey.
func output(c *console, raw bool) io.Writer {
	if _, tty := terminal(c.stdout); tty || !raw {
		return cleaned{c}
	}
	return c.stdout
}

// cleaned prints text without anything that a terminal would obey.
type cleaned struct{ *console }

func (w cleaned) Write(data []byte) (int, error) {
	return len(data), w.print("%s", cleanText(string(data)))
}
