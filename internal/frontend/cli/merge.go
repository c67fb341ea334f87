package cli

import "github.com/spf13/cobra"

func newMerge(s *session) *cobra.Command {
	return newLand(s, &landOptions{console: s.console, delete: true}, &cobra.Command{
		Use:   "merge NAME [git merge flags]",
		Short: "Merge a sandbox's branch and delete the sandbox",
		Long: `Merge a sandbox's branch into your checkout with git merge, then delete the
sandbox: only once its work has really landed, and nothing is left in it that is
in no commit. After a conflict, resolve it, commit, and merge again to finish.
All flags but the ones below go to git merge, in their order.

A sandbox in which something is at work is not merged: a command, a shell, the
session of an agent, a process that a command left running. The message names
them. With --stop, or with your answer on a terminal, they get ten seconds to
end after TERM (shells also get HUP), and what they did is committed and merged
too. Services do not keep it from being merged: they are ended by their stop
signals once the work has landed, and named. apply merges without ending
anything.

Changed files that could run code on this machine are named first, and you are
asked; where nobody can answer, --yes is needed.`,
		Example: `  litterbox merge fix-login
  litterbox merge fix-login --no-ff -m 'Log in with a passkey'`,
	})
}
