package cli

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
)

type installOptions struct {
	console *console
	install func(context.Context, engine.InstallRequest) (engine.Installation, error)
	request engine.InstallRequest
	quiet   bool
	json    bool
}

func newInstall(s *session) *cobra.Command {
	o := &installOptions{console: s.console}
	cmd := &cobra.Command{
		Use:   "install NAME PACKAGE...",
		Short: "Install packages of the operating system in a sandbox",
		Long: `Install packages in a sandbox's system directories, with apt, or with the dnf, pacman
or apk of its base image. PACKAGE is a name as these take it, or a file of this
machine: .deb, .rpm, .pkg.tar.zst or .apk. Your own system does not change, and no
root is needed.

The package manager runs in a separate sandbox that has neither the project nor HOME,
and reaches only what the preset of its name, such as preset:apt, allows. What it
installs is read-only in the sandbox, and part of its forks, snapshots and goldens. The
sandbox restarts to see it; if it is busy, the next command that finds it idle restarts
it.

"apt-get install", "dnf install", "pacman -S" and "apk add" typed inside do the same,
within the network rules of the sandbox.

Every file belongs to one user. Programs that need a separate user, set-user-ID bits,
devices or a system service do not work; recommended packages are left out. The
scripts and hooks of pacman's packages do not run.
container.packages names packages for every new sandbox.`,
		Example: `  litterbox install fix-login ripgrep jq
  litterbox install fix-login postgresql
  litterbox install fix-login ./tool_1.2_amd64.deb`,
		Args:              wantArgs(2, -1),
		ValidArgsFunction: s.sandboxNames(false, ""),
		RunE: s.action(func(ctx context.Context, e useCases, dir string, args []string) error {
			o.install = e.Install
			o.request.Dir, o.request.Name, o.request.Packages = dir, args[0], args[1:]
			return runInstall(ctx, o)
		}),
	}
	cmd.Flags().BoolVar(&o.request.Stop, "stop", false, "end what is at work in the sandbox, so that it can start again")
	cmd.Flags().BoolVar(&o.request.Inside, "inside", false, "a program in the sandbox asks, through its keeper")
	_ = cmd.Flags().MarkHidden("inside") // of a flag that is there
	cmd.Flags().BoolVarP(&o.quiet, "quiet", "q", false, "do not show what the package manager prints")
	cmd.Flags().BoolVar(&o.json, "json", false, "print the result as a JSON object")
	return cmd
}

func runInstall(ctx context.Context, o *installOptions) error {
	output := &lines{console: o.console}
	if !o.quiet {
		o.request.Output = output
	}
	done, err := o.install(ctx, o.request)
	if err = errors.Join(err, output.flush()); err != nil {
		return err
	}
	o.console.notes(done.Notes)
	if o.json {
		done.Packages = list(done.Packages)
		return o.console.document(done)
	}
	return o.console.print("installed %s in %s\n", clean(strings.Join(done.Packages, " ")), clean(done.Name))
}
