package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
)

type milestoneOptions struct {
	console   *console
	milestone func(ctx context.Context, dir, name, message string) (engine.Milestoned, error)

	dir, name, message string
	json               bool
}

func newMilestone(s *session) *cobra.Command {
	o := &milestoneOptions{console: s.console}
	cmd := &cobra.Command{
		Use:   "milestone NAME -m MESSAGE",
		Short: "Squash everything since the last milestone",
		Long: `Squash everything since the last milestone, or since the base, into one commit.
The squashed commits stay reachable under refs/litterbox/. Running commands go on,
and the output names them.`,
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
	messageFlag(cmd.Flags(), &o.message, "`MESSAGE` of the commit (required)")
	cmd.Flags().BoolVar(&o.json, "json", false, "print the commit as one JSON object")
	return cmd
}

// milestoneDocument is what milestone --json prints.
type milestoneDocument struct {
	Name    string        `json:"name"`
	Commit  string        `json:"commit"`
	Message string        `json:"message"`
	Number  int           `json:"number"`
	Running []engine.Work `json:"running"` // at work when the state was taken

	Large []engine.LargeFile `json:"large"` // files of more than a megabyte that it adds or changes
}

func runMilestone(ctx context.Context, o *milestoneOptions) error {
	made, err := o.milestone(ctx, o.dir, o.name, o.message)
	if err != nil {
		return err
	}
	it := made.Iteration
	o.console.noteWork("was at work when its state was taken, and goes on", made.Running)
	for _, f := range made.Large {
		o.console.note("%s has %s; git keeps every version of it for ever", clean(f.Path), amount(f.Size))
	}
	if o.json {
		return o.console.document(milestoneDocument{o.name, it.Commit, it.Message, it.Number, list(made.Running), list(made.Large)})
	}
	return o.console.committed(o.name, it)
}
