package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// writeHelp prints the help page of a command. It is plain code and not one
// of cobra's templates, so that the linker can drop text/template: that alone
// is a visible part of the start-up time.
func writeHelp(cmd *cobra.Command, _ []string) {
	w := cmd.OutOrStdout()
	text := cmd.Long
	if text == "" {
		text = cmd.Short + "."
	}
	fmt.Fprintln(w, text)
	if cmd.Runnable() {
		fmt.Fprintf(w, "\nUsage:\n  %s\n", useLine(cmd))
	}
	if len(cmd.Aliases) > 0 {
		fmt.Fprintf(w, "\nAlso:\n  %s\n", strings.Join(cmd.Aliases, ", "))
	}
	if cmd.Example != "" {
		fmt.Fprintf(w, "\nExample:\n%s\n", cmd.Example)
	}
	writeCommands(w, cmd)
	writeFlags(w, "Flags", cmd.LocalFlags())
	if !cmd.HasParent() {
		fmt.Fprint(w, "\nEvery command explains itself: litterbox COMMAND --help\n")
	}
}

// useLine is the usage without cobra's own additions.
func useLine(cmd *cobra.Command) string {
	if cmd.HasParent() {
		return cmd.Parent().CommandPath() + " " + cmd.Use
	}
	return cmd.Use
}

func writeCommands(w io.Writer, cmd *cobra.Command) {
	if cmd.HasParent() {
		if cmd.HasAvailableSubCommands() {
			fmt.Fprint(w, "\nCommands:\n")
		}
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() {
				fmt.Fprintf(w, "  %-11s %s\n", sub.Name(), sub.Short)
			}
		}
		return
	}
	for _, group := range cmd.Groups() {
		fmt.Fprintf(w, "\n%s:\n", group.Title)
		for _, sub := range cmd.Commands() {
			if sub.GroupID == group.ID && sub.IsAvailableCommand() {
				fmt.Fprintf(w, "  %-11s %s\n", sub.Name(), sub.Short)
			}
		}
	}
	fmt.Fprint(w, "\nMore help:\n")
	for _, sub := range cmd.Commands() {
		if sub.IsAdditionalHelpTopicCommand() {
			fmt.Fprintf(w, "  %-11s %s\n", sub.Name(), sub.Short)
		}
	}
}

func writeFlags(w io.Writer, title string, flags *pflag.FlagSet) {
	// --help says nothing to a reader of the help page.
	shown := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" {
			shown.AddFlag(f)
		}
	})
	if shown.HasAvailableFlags() {
		fmt.Fprintf(w, "\n%s:\n%s", title, shown.FlagUsages())
	}
}

// newHelp explains a command or a topic. Unlike cobra's it fails for an unknown
// one.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND]",
		Short:   "Explain a command",
		GroupID: groupSystem,
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			found, rest, err := root.Find(args)
			if err != nil || found == root && len(args) > 0 || found.HasSubCommands() && len(rest) > 0 {
				return noSuchCommand(root, args)
			}
			return found.Help()
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			found, _, err := cmd.Root().Find(args)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			var names []cobra.Completion
			for _, sub := range found.Commands() {
				if sub.IsAvailableCommand() || sub.IsAdditionalHelpTopicCommand() {
					names = append(names, cobra.CompletionWithDesc(sub.Name(), sub.Short))
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	}
}

// newExitCodes is a help topic, not a command.
func newExitCodes() *cobra.Command {
	var b strings.Builder
	b.WriteString(`Exit codes.

exec, run and shell end with the exit code of their command: 128+N when signal
N ended it, 124 after --timeout, 125 when litterbox itself failed. diff, apply and merge end with
git's own exit code once git has run. Elsewhere:

`)
	fmt.Fprintf(&b, "  %3d  %-14s %s\n", 0, "", "done")
	for _, row := range exitTable() {
		fmt.Fprintf(&b, "  %3d  %-14s %s\n", row.code, row.kind, row.when)
	}
	fmt.Fprintf(&b, "  %3d  %-14s %s", exitBrokenPipe, "", "the reader of the output closed it")
	return &cobra.Command{Use: "exit-codes", Short: "What the exit codes mean", Long: b.String()}
}
