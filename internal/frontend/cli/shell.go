package cli

import (
	"context"
	"path"

	"github.com/spf13/cobra"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
)

func newShell(s *session) *cobra.Command {
	o := &execOptions{console: s.console, kind: "shell"}
	cmd := &cobra.Command{
		Use:   "shell NAME [-- CMD...]",
		Short: "Open a shell in a sandbox",
		Long: `Open your shell, or sh if yours does not exist inside, in a sandbox, in the
current directory of the project. Many shells may be open at once; all share one
view. The changes become one commit when the shell ends. The shell has colors,
completion and the usual aliases; shell.rc in your own configuration names a file
with more.`,
		Example: `  litterbox shell fix-login
  litterbox shell fix-login -- python3`,
		Args:              wantArgs(1, -1),
		Annotations:       passThrough(),
		ValidArgsFunction: s.sandboxNames(false, ""),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, argv, err := commandAfterName(cmd, args)
			if err != nil || argv == nil {
				return err
			}
			if err := o.env.read(cmd, o.console); err != nil {
				return err
			}
			o.name, o.argv = name, argv
			return s.command(cmd, func(ctx context.Context, e useCases, dir string) error {
				o.exec, o.dir = e.Exec, dir
				o.finds = e.FindProgram
				o.standIn(e, dir)
				return runShell(ctx, o)
			})
		},
	}
	cmd.Flags().SetInterspersed(false)
	o.env.addFlags(cmd)
	allowDegradedFlag(cmd, &o.allowDegraded)
	askFlag(cmd, &o.ask)
	return cmd
}

func runShell(ctx context.Context, o *execOptions) error {
	if err := o.console.checkAsk(o.ask); err != nil {
		return err // before anything is started
	}
	if len(o.argv) == 0 {
		shell, err := chooseShell(ctx, o)
		if err != nil {
			return err
		}
		o.argv, o.message, o.interactive = []string{shell}, "shell session", true
	}
	return runExec(ctx, o)
}

// chooseShell asks the sandbox whether it has the user's shell. It is asked by
// its base name: the path on the host need not exist inside.
func chooseShell(ctx context.Context, o *execOptions) (string, error) {
	mine := path.Base(o.console.env("SHELL"))
	if mine == "." || mine == "/" || mine == "sh" {
		return "sh", nil
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	found, err := o.finds(ctx, engine.Place{Dir: o.dir, Name: o.name}, mine, o.allowDegraded)
	if err != nil {
		return "", interrupted(ctx, err)
	}
	if !found {
		return "sh", nil
	}
	return mine, nil
}
