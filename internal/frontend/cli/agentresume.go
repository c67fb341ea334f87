package cli

import (
	"context"

	"github.com/spf13/cobra"
)

func newAgentResume(s *session) *cobra.Command {
	o := &agentRunOptions{console: s.console}
	cmd := &cobra.Command{
		Use:   "resume NAME [PROMPT|-] [flags] [-- ARGS...]",
		Short: "Go on with an agent's conversation",
		Long: `Continue the conversation of the last agent in a sandbox: its client keeps it in
the sandbox's home. Without PROMPT the client's full-screen interface opens.`,
		Example: `  litterbox agent resume fix-flaky-login 'Now do the same for the logout test'
  litterbox agent resume fix-flaky-login`,
		Args:              wantArgs(1, -1),
		Annotations:       passThrough(),
		ValidArgsFunction: s.complete(completeRuns(false)),
	}
	f := cmd.Flags()
	f.BoolVarP(&o.interactive, "interactive", "i", false, "open the client's own full-screen interface")
	f.BoolVarP(&o.detach, "detach", "d", false, "return at once; the agent keeps working")
	o.flags(cmd)
	o.parallel = 1
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := o.arguments(cmd, args); err != nil {
			return err
		}
		name := o.client
		o.client, o.task.Resume = "", true
		return s.command(cmd, func(ctx context.Context, e useCases, dir string) error {
			o.e, o.dir, o.in = e, dir, name
			return runAgentRun(ctx, o)
		})
	}
	return cmd
}

func newAgentAttach(s *session) *cobra.Command {
	o := &agentRunOptions{console: s.console}
	cmd := &cobra.Command{
		Use:   "attach NAME",
		Short: "Come back to an agent that works",
		Long: `Reattach to the agent that works in a sandbox: to the full-screen interface of its
client, which Ctrl-] and then d leaves again, or to the lines of its progress.`,
		Example:           "  litterbox agent attach fix-flaky-login",
		Args:              wantArgs(1, 1),
		Annotations:       passThrough(),
		ValidArgsFunction: s.complete(completeRuns(false)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.command(cmd, func(ctx context.Context, e useCases, dir string) error {
				o.e, o.dir = e, dir
				run, err := e.LastRun(ctx, dir, args[0])
				if err != nil {
					return err
				}
				if run.Screen {
					if err := o.console.checkScreen(false); err != nil {
						return err.WithHint("litterbox agent logs %s", run.Sandbox)
					}
				}
				return o.watch(ctx, run)
			})
		},
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print events, each as one line of JSON")
	return cmd
}
