package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
)

func newRename(s *session) *cobra.Command {
	var request engine.RenameRequest
	var json bool
	cmd := &cobra.Command{
		Use:   "rename NAME NEW",
		Short: "Rename a sandbox",
		Long: `Rename a sandbox and its branch. An idle sandbox that runs is stopped; the next
command starts it again. A busy one is not renamed. Checkouts of the branch follow.
The git inside keeps its branch name.`,
		Example: `  litterbox rename fix-login fix-signup
  litterbox rename --keep-branch fix-login login`,
		Args:              wantArgs(2, 2),
		ValidArgsFunction: s.sandboxNames(false, ""),
		RunE: s.action(func(ctx context.Context, e useCases, dir string, args []string) error {
			request.Dir, request.Name, request.New = dir, args[0], args[1]
			renamed, err := e.Rename(ctx, request)
			for _, note := range renamed.Notes {
				s.console.note("%s", note)
			}
			if err != nil {
				return err
			}
			if json {
				renamed.Notes = list(renamed.Notes)
				return s.console.document(renamed)
			}
			return s.console.print("renamed %s to %s on branch %s\n", clean(renamed.Old), clean(renamed.Name), clean(renamed.Branch))
		}),
	}
	cmd.Flags().BoolVar(&request.KeepBranch, "keep-branch", false, "leave the name of the branch as it is")
	cmd.Flags().BoolVar(&json, "json", false, "print one JSON object")
	return cmd
}
