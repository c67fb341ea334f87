package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

func newUpdate(s *session) *cobra.Command {
	var request engine.UpdateRequest
	var json, goldens bool
	conflicts, conflictChoices := "refuse", []string{"refuse", "markers"}
	cmd := &cobra.Command{
		Use:   "update NAME [--onto REF] [--rebase]",
		Short: "Bring a sandbox to a newer base",
		Long: `Bring a sandbox up to date with its base: the branch that it began on, or the
revision that --onto names. The sandbox's branch gets a merge commit, or with
--rebase its commits are rewritten on top of the new base; the old commits stay
reachable under refs/litterbox/.

The files inside follow one by one. Ignored files and HOME stay, and services,
shells and commands go on. The git inside gets the commits of the new base and
nothing else from this repository.

If both sides changed the same lines, nothing changes at all. With --conflicts
markers the merge is made and the files hold conflict markers, to be resolved in
the sandbox; the output and the log name these files.`,
		Example: `  litterbox update fix-login
  litterbox update fix-login --onto origin/main --rebase
  litterbox update fix-login --conflicts markers`,
		Args: func(cmd *cobra.Command, args []string) error {
			if goldens {
				return fault.New(fault.Invalid, "cannot update a sandbox with --sync-only: that is how a golden is updated").
					WithHint("litterbox golden update --sync-only")
			}
			return wantArgs(1, 1)(cmd, args)
		},
		ValidArgsFunction: s.sandboxNames(false, ""),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(conflictChoices, conflicts) {
				return usageError(cmd, "--conflicts is %s, not %q", strings.Join(conflictChoices, " or "), conflicts)
			}
			return s.action(func(ctx context.Context, e useCases, dir string, args []string) error {
				request.Dir, request.Name, request.Markers = dir, args[0], conflicts == "markers"
				updated, err := e.Update(ctx, request)
				if err != nil {
					return err
				}
				return s.console.updated(updated, json)
			})(cmd, args)
		},
	}
	cmd.Flags().StringVar(&request.Onto, "onto", "", "`REF` to update to (default: the branch it began on)")
	cmd.Flags().BoolVar(&request.Rebase, "rebase", false, "rewrite its commits on top instead of merging")
	cmd.Flags().StringVar(&conflicts, "conflicts", conflicts, "`HOW` to treat conflicts: refuse, or leave markers")
	cmd.Flags().BoolVar(&json, "json", false, "print what was done as one JSON object")
	cmd.Flags().BoolVar(&goldens, "sync-only", false, "of litterbox golden update")
	_ = cmd.Flags().MarkHidden("sync-only")                             // fails for a flag that is not there
	_ = cmd.RegisterFlagCompletionFunc("onto", s.complete(completeRef)) // fails for a flag that is not there
	_ = cmd.RegisterFlagCompletionFunc("conflicts", cobra.FixedCompletions(conflictChoices, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// updated words the result of an update.
func (c *console) updated(u engine.Updated, json bool) error {
	if json {
		u.Conflicts, u.Stayed = list(u.Conflicts), list(u.Stayed)
		return c.document(u)
	}
	onto := clean(u.OntoRef)
	switch {
	case u.Number == 0 && u.Changed == 0:
		return c.print("%s already has all of %s\n", clean(u.Name), onto)
	case u.Number == 0:
		return c.print("%s already has all of %s; %s inside followed\n", clean(u.Name), onto, counted(u.Changed, "file", "files"))
	}
	if u.History != "" {
		c.note("the commits before the rebase are kept: git log %s", short(u.Before))
	}
	if err := c.print("[%s %s] %s of %s, %s inside changed\n", clean(u.Name), short(u.Commit),
		counted(u.Taken, "commit", "commits"), onto, counted(u.Changed, "file", "files")); err != nil {
		return err
	}
	if len(u.Conflicts) > 0 {
		c.note("conflict markers to resolve are in: %s", clean(strings.Join(u.Conflicts, ", ")))
	}
	return nil
}
