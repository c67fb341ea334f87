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

Changed files that could run code on this machine are named first, and you are
asked; where nobody can answer, --yes is needed.`,
		Example: `  litterbox merge fix-login
  litterbox merge fix-login --no-ff -m 'Log in with a passkey'`,
	})
}
