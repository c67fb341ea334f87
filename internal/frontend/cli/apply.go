package cli

import "github.com/spf13/cobra"

func newApply(s *session) *cobra.Command {
	return newLand(s, &landOptions{console: s.console}, &cobra.Command{
		Use:   "apply NAME [git merge flags]",
		Short: "Merge a sandbox's branch and keep the sandbox",
		Long: `Merge a sandbox's branch into your checkout with git merge, and keep the
sandbox. All flags but the ones below go to git merge, in their order. Running
commands go on; the output names them, because their files are merged as they are
at this moment.

Changed files that could run code on this machine are listed first, the most
urgent at the top, and you are asked; without a terminal, --yes is needed. The
check covers the result of this very merge, with its flags, entry by entry against
HEAD; exactly what you approve lands, or you are asked again.

Untracked files of yours are no obstacle if they have the same content as the
merge. If any other file is in the way, even an ignored one, it stays and nothing
is merged.`,
		Example: `  litterbox apply fix-login
  litterbox apply fix-login --squash
  litterbox apply fix-login --abort`,
	})
}
