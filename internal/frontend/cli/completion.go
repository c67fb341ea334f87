package cli

import (
	"github.com/spf13/cobra"
)

func newCompletion(s *session) *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Print a completion script for your shell",
		Long: `Print a script that completes commands, flags and the names of sandboxes in your
shell.`,
		Example: `  source <(litterbox completion bash)
  litterbox completion zsh >"${fpath[1]}/_litterbox"
  litterbox completion fish >~/.config/fish/completions/litterbox.fish`,
		Args:              wantArgs(1, 1),
		ValidArgs:         shells,
		ValidArgsFunction: cobra.FixedCompletions(shells, cobra.ShellCompDirectiveNoFileComp),
		RunE: func(cmd *cobra.Command, args []string) error {
			root, out := cmd.Root(), s.console.stdout
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(out, true)
			case "zsh":
				return root.GenZshCompletion(out)
			case "fish":
				return root.GenFishCompletion(out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(out)
			}
			return usageError(cmd, "%q is none of bash, zsh, fish, powershell", args[0])
		},
	}
}
