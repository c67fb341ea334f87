package cli

import "github.com/spf13/cobra"

func newApply(s *session) *cobra.Command {
	return newLand(s, &landOptions{console: s.console}, &cobra.Command{
		Use:   "apply NAME [git merge flags]",
		Short: "Merge a sandbox's branch and keep the sandbox",
		Long: `Merge a sandbox's branch into your checkout with git merge, and keep the
sandbox. All flags but the ones below go to git merge, in their order. What is at
work in the sandbox goes on; the output names it, because its files are merged
as they are at this moment.

Changed files that could run code on this machine are named first, the most
urgent at the top, and you are asked; where there is no terminal, --yes is
needed. What is judged is the result of this very merge, with its flags, entry by
entry against HEAD; what you approve is what lands, or you are asked again.

Untracked files of yours with the content that the merge brings are no obstacle.
Any other content in its way stays, ignored files too, and nothing is merged.`,
		Example: `  litterbox apply fix-login
  litterbox apply fix-login --squash
  litterbox apply fix-login --abort`,
	})
}
