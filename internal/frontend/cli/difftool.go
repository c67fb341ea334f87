package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

func newDiffTool(s *session) *cobra.Command {
	o := &diffOptions{console: s.console}
	cmd := &cobra.Command{
		Use:   "difftool NAME [--from STEP] [--to STEP] [git difftool flags] [PATH...]",
		Short: "Show what a sandbox changed in git's difftool",
		Long: `Show what diff shows in the tool that your own git is configured with (diff.tool),
or in that of --tool or --extcmd. Flags go to git difftool, and paths are relative
to the current directory, as with diff. The tool gets read-only copies in a
directory of their own, outside of your checkout, which is gone when it ends; what
it saves is gone too. A symbolic link is shown as a file that contains its target.

Changed files that could run code on this machine are named first.`,
		Example: `  litterbox difftool fix-login
  litterbox difftool fix-login --tool meld --dir-diff
  litterbox difftool fix-login --from 3 -y src`,
		DisableFlagParsing: true,
		ValidArgsFunction:  s.diffStates,
		RunE: func(cmd *cobra.Command, args []string) error {
			args, err := valueFlags(cmd, args, map[string]*string{"--from": &o.from, "--to": &o.to})
			if err != nil {
				return err
			}
			name, git, help, err := gitArgs(cmd, args, nil)
			if help {
				return cmd.Help()
			}
			if err != nil {
				return err
			}
			o.name, o.args = name, withPaths(git)
			return s.command(cmd, func(ctx context.Context, e useCases, dir string) error {
				o.diff, o.dir = e.DiffTool, dir
				return runDiffTool(ctx, o)
			})
		},
	}
	cmd.Flags().StringVar(&o.from, "from", "", "begin at a `STEP`: an iteration's number, a snapshot or milestone")
	cmd.Flags().StringVar(&o.to, "to", "", "end at a `STEP`: an iteration's number or a snapshot")
	return cmd
}

func runDiffTool(ctx context.Context, o *diffOptions) error {
	ctx, stop := leavingToGit(ctx, -1) // the tool owns the terminal until it is left
	defer stop()
	code, err := o.diff(ctx, engine.DiffRequest{
		Dir: o.dir, Name: o.name, Since: o.from, To: o.to, Args: o.args,
		Stdin: o.console.stdin, Stdout: o.console.stdout, Stderr: o.console.stderr,
	})
	if err != nil {
		return err
	}
	if code < 0 {
		return fault.New(fault.Canceled, "a signal ended git difftool")
	}
	return statusError(code)
}
