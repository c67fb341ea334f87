package cli

import "github.com/spf13/cobra"

func newMerge(s *session) *cobra.Command {
	return newLand(s, &landOptions{console: s.console, delete: true}, &cobra.Command{
		Use:   "merge NAME [git merge flags]",
		Short: "Merge a sandbox's branch and delete the sandbox",
		Long: `Merge a sandbox's branch into your checkout with git merge, then delete the
sandbox: only once its work has really landed, and nothing is left in it that is
in no commit. After a conflict, resolve it, git add it, and merge again to finish.
All flags but the ones below go to git merge, in their order.

A sandbox in which something is at work is not merged: a command, a shell, the
session of an agent, a process that a command left running. The message names
them. With --stop, or with your answer on a terminal, they get ten seconds to
end after TERM (shells also get HUP), and what they did is committed and merged
too. Services do not keep it from being merged: they are ended by their stop
signals once the work has landed, and named. apply merges without ending
anything.

Changed files that could run code on this machine are named first, the most
urgent at the top, and you are asked; where there is no terminal, --yes is
needed. What is judged is the result of this very merge, with its flags, entry by
entry against HEAD; what you approve is what lands, or you are asked again.

Untracked files of yours with the content that the merge brings are no obstacle.
Any other content in its way stays, ignored files too, and nothing is merged.`,
		Example: `  litterbox merge fix-login
  litterbox merge fix-login --no-ff -m 'Log in with a passkey'`,
	})
}
