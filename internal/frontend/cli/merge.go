package cli

import "github.com/spf13/cobra"

func newMerge(s *session) *cobra.Command {
	return newLand(s, &landOptions{console: s.console, delete: true}, &cobra.Command{
		Use:   "merge NAME [git merge flags]",
		Short: "Merge a sandbox's branch and delete the sandbox",
		Long: `Merge a sandbox's branch into your checkout with git merge, then delete the
sandbox, but only once its work has really landed and everything in it is in a
commit. After a conflict, resolve it, git add it, and merge again to finish.
All flags but the ones below go to git merge, in their order.

A busy sandbox is not merged: one with a running command, a shell, an agent's
session, or a process that a command left running. The message names them. With
--stop, or with your answer on a terminal, they get ten seconds to end after TERM
(shells also get HUP), and their changes are committed and merged too. Services do
not block a merge: once the work has landed they are ended by their stop signals,
and named. apply merges without ending anything.

Changed files that could run code on this machine are listed first, the most
urgent at the top, and you are asked; without a terminal, --yes is needed. The
check covers the result of this very merge, with its flags, entry by entry against
HEAD; exactly what you approve lands, or you are asked again.

The sandbox's steps land as they are, unless --squash=milestone, --squash=all or
history below [git] in .litterbox.toml make one commit of them. The steps stay
reachable under refs/litterbox/history/.

Untracked files of yours with the content that the merge brings are no obstacle.
Any other content in its way stays, ignored files too, and nothing is merged.`,
		Example: `  litterbox merge fix-login
  litterbox merge fix-login --squash=all
  litterbox merge fix-login --no-ff -m 'Log in with a passkey'`,
	})
}
