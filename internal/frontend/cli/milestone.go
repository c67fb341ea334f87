package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

type milestoneOptions struct {
	console   *console
	milestone func(ctx context.Context, dir, name, message string) (*sandbox.Iteration, error)

	dir, name, message string
}

func newMilestone(s *session) *cobra.Command {
	o := &milestoneOptions{console: s.console}
	cmd := &cobra.Command{
		Use:   "milestone NAME -m MESSAGE",
		Short: "Squash everything since the last milestone",
		Long: `Squash everything since the last milestone, or since the base, into one commit.
The squashed commits stay reachable under refs/litterbox/.`,
		Example:           "  litterbox milestone fix-login -m 'Log in with a passkey'",
		Args:              wantArgs(1, 1),
		ValidArgsFunction: s.sandboxNames(false, ""),
		RunE: func(cmd *cobra.Command, args []string) error {
			if strings.TrimSpace(o.message) == "" {
				return usageError(cmd, "a milestone needs a message: -m MESSAGE")
			}
			return s.action(func(ctx context.Context, e useCases, dir string, args []string) error {
				o.milestone, o.dir, o.name = e.Milestone, dir, args[0]
				return runMilestone(ctx, o)
			})(cmd, args)
		},
	}
	cmd.Flags().StringVarP(&o.message, "message", "m", "", "`MESSAGE` of the commit (required)")
	return cmd
}

func runMilestone(ctx context.Context, o *milestoneOptions) error {
	it, err := o.milestone(ctx, o.dir, o.name, o.message)
	if err != nil {
		return err
	}
	return o.console.committed(o.name, it)
}
