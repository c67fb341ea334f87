package cli

import (
	"context"

	"github.com/spf13/cobra"
)

type pathOptions struct {
	console *console
	path    func(ctx context.Context, dir, name string) (string, error)

	dir, name string
	json      bool
}

func newPath(s *session) *cobra.Command {
	o := &pathOptions{console: s.console}
	cmd := &cobra.Command{
		Use:   "path NAME",
		Short: "Print where a sandbox's committed files can be read",
		Long: `Update and print a directory that holds the committed files of a sandbox, for your
editor. It is a copy: changes that you make there are lost, and the sandbox never
sees them. It is outside of your checkout, so that test runners, linters and
formatters do not find unmerged files; in the checkout, .litterbox/worktrees/NAME
is a file that holds the directory's path.`,
		Example: `  litterbox path fix-login
  litterbox path fix-login --json`,
		Args:              wantArgs(1, 1),
		ValidArgsFunction: s.sandboxNames(false, ""),
		RunE: s.action(func(ctx context.Context, e useCases, dir string, args []string) error {
			o.path, o.dir, o.name = e.Path, dir, args[0]
			return runPath(ctx, o)
		}),
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print an object with the directory as path")
	return cmd
}

func runPath(ctx context.Context, o *pathOptions) error {
	path, err := o.path(ctx, o.dir, o.name)
	if err != nil {
		return err
	}
	if o.json {
		return o.console.document(struct {
			Path string `json:"path"`
		}{path})
	}
	return o.console.print("%s\n", path)
}
