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
		Long: `Print a directory that holds what a sandbox has committed, as plain files for
your editor, brought up to date. It is a copy: changes you make there are lost,
and the sandbox never sees it. It lies outside of your checkout, where no test
runner, linter or formatter finds what you have not merged; in the checkout,
.litterbox/worktrees/NAME is a file that holds the directory's path.`,
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
