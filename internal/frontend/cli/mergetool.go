package cli

import "github.com/spf13/cobra"

func newMergeTool(s *session) *cobra.Command {
	return newLand(s, &landOptions{console: s.console, delete: true, solve: true}, &cobra.Command{
		Use:   "mergetool NAME [git merge flags]",
		Short: "Merge a sandbox, with conflicts resolved in git's mergetool first",
		Long: `Merge a sandbox as merge does, and resolve conflicts first: with git mergetool and
the tool that your own git is configured with (merge.tool), or --tool. The tool
gets the files with conflicts in a directory of their own, outside of your
checkout. Once all are resolved, the merge continues as merge does: files that could
run code on this machine are listed and asked about, and the sandbox is deleted
when its work has landed. Until then your checkout does not change; if you leave
the tool with conflicts, nothing is merged, and your resolutions are discarded.

Without conflicts it is merge.`,
		Example: `  litterbox mergetool fix-login
  litterbox mergetool fix-login --tool vimdiff --no-prompt`,
	})
}

// toolArgs are the arguments for git mergetool, nil where it is not wanted.
func (o *landOptions) toolArgs() []string {
	if !o.solve {
		return nil
	}
	args := []string{}
	if o.tool != "" {
		args = append(args, "--tool="+o.tool)
	}
	if o.noPrompt {
		args = append(args, "--no-prompt")
	}
	return args
}
