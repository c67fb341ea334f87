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

Changed files that could run code on this machine are named first, and you are
asked; where nobody can answer, --yes is needed.`,
		Example: `  litterbox apply fix-login
  litterbox apply fix-login --squash
  litterbox apply fix-login --abort`,
	})
}
