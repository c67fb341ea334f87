package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// gitArgs splits the arguments of a command that hands its flags to git: own
// flags are set and removed, NAME is the first argument that does not begin
// with a dash, everything else stays as it is and in its order. After "--"
// everything is git's. Cobra cannot do this: it would have to know each flag
// of git to tell its value from NAME.
func gitArgs(cmd *cobra.Command, args []string, own map[string]*bool) (name string, git []string, help bool, err error) {
	git = []string{}
	for i, arg := range args {
		switch {
		case arg == "--":
			git = append(git, args[i:]...)
			return name, git, help, needName(cmd, name)
		case arg == "--help" || arg == "-h" && name == "":
			return name, git, true, nil
		case own[arg] != nil:
			*own[arg] = true
		case name == "" && !strings.HasPrefix(arg, "-"):
			name = arg
		default:
			git = append(git, arg)
		}
	}
	return name, git, help, needName(cmd, name)
}

func needName(cmd *cobra.Command, name string) error {
	if name == "" {
		return usageError(cmd, "no sandbox name")
	}
	return nil
}

// valueFlags takes litterbox's own flags with a value out of arguments that are
// otherwise git's: "--from 3" or "--from=3", before "--".
func valueFlags(cmd *cobra.Command, args []string, own map[string]*string) (rest []string, err error) {
	for i := 0; i < len(args); i++ {
		if args[i] == "--" {
			return append(rest, args[i:]...), nil
		}
		flag, value, given := strings.Cut(args[i], "=")
		into := own[flag]
		if into == nil {
			rest = append(rest, args[i])
			continue
		}
		if !given {
			if i++; i == len(args) {
				return nil, usageError(cmd, "%s needs a value", flag)
			}
			value = args[i]
		}
		*into = value
	}
	return rest, nil
}
