package cli

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
)

func newBuild(s *session) *cobra.Command {
	var request engine.BuildRequest
	cmd := &cobra.Command{
		Use:   "build [NAME]",
		Short: "Make a golden, which new sandboxes start with",
		Long: `Make a golden of the repository: in a temporary sandbox, on HEAD or --base, run
what the configuration names, in this order: golden.agents, hooks.post_provision,
tools, container.setup-command, the services, hooks.post_sync. Then keep HOME,
package caches and the files of the project that git ignores: node_modules, virtual
environments, caches, databases. What git does not ignore is never part of it.

Each sandbox created afterwards starts with the golden called default, or with
--golden NAME: its files are there at the first command, on any base. Changes that
a sandbox makes to them stay in that sandbox. The previous golden stays until the
new one is complete; a failed build leaves it in place.

With --machine, and with a --driver that has machines of its own, the golden stays
there, for sandboxes there. A name can have one golden on each machine.

The network policy holds as in any sandbox; a failure names the destinations that
it refused. A repository's hooks and tools run only after litterbox trust.`,
		Example:           "  litterbox build\n  litterbox build python --base release",
		Args:              wantArgs(0, 1),
		ValidArgsFunction: s.goldenNames(),
	}
	cmd.Flags().StringVar(&request.Base, "base", "", "build on `REF` instead of HEAD")
	_ = cmd.RegisterFlagCompletionFunc("base", s.complete(completeRef)) // fails for a flag that is not there
	cmd.Flags().BoolVar(&request.NoCache, "no-cache", false, "without package caches of this machine; ask the registry for the image again")
	cmd.Flags().BoolVar(&request.SkipSync, "skip-sync", false, "without the services and hooks.post_sync")
	s.driverFlag(cmd, &request.Driver, chosenDriver)
	s.builds(cmd, &request)
	return cmd
}

func newGoldenUpdate(s *session) *cobra.Command {
	request := engine.BuildRequest{Update: true}
	cmd := &cobra.Command{
		Use:   "update [NAME]",
		Short: "Bring a golden to HEAD",
		Long: `Bring a golden to HEAD: begin with what it holds, and run what has changed.
hooks.post_provision and container.setup-command run where their command, the
environment, a lock file or an input has changed, or a part before them;
golden.agents, tools, the services and hooks.post_sync always. With --sync-only, run
only the services and hooks.post_sync. Existing sandboxes keep what they began with.
What did not run may leave the golden stale: litterbox build makes all of it again.`,
		Example:           "  litterbox golden update\n  litterbox golden update --sync-only",
		Args:              wantArgs(0, 1),
		ValidArgsFunction: s.goldenNames(),
	}
	s.driverFlag(cmd, &request.Driver, "update the golden of `DRIVER` instead of the newest of the name")
	cmd.Flags().BoolVar(&request.SyncOnly, "sync-only", false, "run the services and hooks.post_sync only")
	s.builds(cmd, &request)
	return cmd
}

// builds is the common part of both commands.
func (s *session) builds(cmd *cobra.Command, request *engine.BuildRequest) {
	var json bool
	cmd.Flags().BoolVar(&json, "json", false, "print the golden as one JSON object")
	cmd.RunE = s.action(func(ctx context.Context, e useCases, dir string, args []string) error {
		output := &lines{console: s.console}
		request.Dir, request.Name, request.Review, request.Output = dir, optional(args), s.console.review, output
		built, err := e.Build(ctx, *request)
		err = errors.Join(err, output.flush())
		s.console.notes(built.Notes)
		if err != nil {
			if built.Log != "" {
				s.console.note("log: %s", clean(built.Log))
			}
			return err
		}
		if json {
			return s.console.document(built.Golden)
		}
		took := time.Duration(built.Took * float64(time.Second)).Round(100 * time.Millisecond)
		return s.console.print("built golden %s at %s in %s, %s\n", clean(built.Name), short(built.Base), took, amount(built.Bytes))
	})
}
