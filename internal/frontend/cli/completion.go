package cli

import (
	"bytes"
	"io"

	"github.com/spf13/cobra"
)

func newCompletion(s *session) *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Print a completion script for your shell",
		Long: `Print a script that completes commands, flags, names of sandboxes, services,
ports, presets, limits, secrets and refs, and paths inside, in your shell. It
needs no other package.`,
		Example: `  source <(litterbox completion bash)
  autoload -U compinit && compinit && source <(litterbox completion zsh)
  litterbox completion zsh >"${fpath[1]}/_litterbox"
  litterbox completion fish >~/.config/fish/completions/litterbox.fish`,
		Args:              wantArgs(1, 1),
		ValidArgs:         shells,
		ValidArgsFunction: cobra.FixedCompletions(shells, cobra.ShellCompDirectiveNoFileComp),
		RunE: func(cmd *cobra.Command, args []string) error {
			root, out := cmd.Root(), s.console.stdout
			switch args[0] {
			case "bash":
				return bashCompletion(root, out)
			case "zsh":
				return root.GenZshCompletion(out)
			case "fish":
				return root.GenFishCompletion(out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(out)
			}
			return usageError(cmd, "%q is not one of bash, zsh, fish, powershell", args[0])
		},
	}
}

// bashCompletion writes the script for bash. The one that is generated calls a
// function of the package bash-completion, which macOS and minimal systems do not
// have; where it is missing a function of this script splits the words.
func bashCompletion(root *cobra.Command, out io.Writer) error {
	var script bytes.Buffer
	if err := root.GenBashCompletionV2(&script, true); err != nil {
		return err
	}
	const call = `    _get_comp_words_by_ref "$@" cur prev words cword
`
	own := bytes.Replace(script.Bytes(), []byte(call), []byte(`    if declare -F _get_comp_words_by_ref >/dev/null 2>&1; then
        _get_comp_words_by_ref "$@" cur prev words cword
    else
        __litterbox_words
    fi
`), 1)
	_, err := out.Write(append([]byte(bashWords), own...))
	return err
}

// bashWords joins what readline has split at = and :, and sets the variables that
// the script reads, as _get_comp_words_by_ref -n =: does. It runs in bash 3.2, too.
const bashWords = `# Without the package bash-completion: the words of the line, with = and : in
# them.
__litterbox_words()
{
    local rest="$COMP_LINE" i part last
    words=()
    cword=0
    for ((i = 0; i < ${#COMP_WORDS[@]}; i++)); do
        part="${COMP_WORDS[i]}"
        last=""
        ((${#words[@]})) && last="${words[${#words[@]} - 1]}"
        if [[ -n "$last" && "$rest" != [[:space:]]* && ("$part" == [=:]* || "$last" == *[=:]) ]]; then
            words[${#words[@]} - 1]="$last$part"
        else
            rest="${rest#"${rest%%[![:space:]]*}"}"
            words+=("$part")
        fi
        rest="${rest#"$part"}"
        ((i == COMP_CWORD)) && cword=$((${#words[@]} - 1))
    done
    cur="${words[cword]}"
    prev=""
    ((cword)) && prev="${words[cword - 1]}"
}

`
