package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

func newFork(s *session) *cobra.Command {
	var request engine.ForkRequest
	var json bool
	cmd := &cobra.Command{
		Use:   "fork NAME NEW",
		Short: "Start a second sandbox with everything the first one holds",
		Long: `Start a second sandbox with everything that the first one holds: all files,
ignored ones too, HOME, the agent's own git, the log, the limits and the network
policy. The new sandbox has its own branch from the same commit. The first one
keeps running, except for a short pause; files that neither changes are on the disk
once. Processes, files in /tmp and forwarded ports are not copied. The first
command in the new sandbox starts it.`,
		Example: `  litterbox fork fix-login fix-login-2
  litterbox fork fix-login earlier --at s2
  litterbox fork fix-login try --count 3
  litterbox compare try-1 try-2 try-3 --test 'make test'`,
		Args:              wantArgs(2, 2),
		ValidArgsFunction: s.sandboxNames(false, ""),
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("count") && request.Count < 1 {
				return usageError(cmd, "--count must be at least 1, not %d", request.Count)
			}
			return nil
		},
		RunE: s.action(func(ctx context.Context, e useCases, dir string, args []string) error {
			request.Dir, request.Name, request.New = dir, args[0], args[1]
			made, err := e.Fork(ctx, request)
			s.console.notes(made.Notes)
			if err != nil && len(made.Forks) == 0 {
				return err
			}
			// Those made before an error stay, and are named.
			if json {
				return errors.Join(err, s.console.document(list(made.Forks)))
			}
			for _, one := range made.Forks {
				if err := s.console.print("forked %s into %s on %s at %s\n", clean(args[0]), clean(one.Name), clean(one.Branch), short(one.Head)); err != nil {
					return err
				}
			}
			return err
		}),
	}
	cmd.Flags().StringVar(&request.At, "at", "", "begin at an `ITERATION` (its number) or a snapshot instead of now")
	cmd.Flags().IntVar(&request.Count, "count", 0, "make `N` sandboxes: NEW-1 to NEW-N")
	cmd.Flags().BoolVar(&json, "json", false, "print a JSON array of the new sandboxes")
	_ = cmd.RegisterFlagCompletionFunc("at", func(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return s.statesOf(cmd, args[0], toComplete)
	}) // the flag exists
	return cmd
}

func newCompare(s *session) *cobra.Command {
	var test string
	var json, patch bool
	var chosen selection
	cmd := &cobra.Command{
		Use:   "compare NAME NAME...",
		Short: "Put sandboxes side by side",
		Long: `Compare sandboxes side by side: commits, files and lines that each adds to its base,
and the exit code of its last command. With --test a command runs in each of them,
by sh -c, and its exit code is shown instead; nothing is committed, and what it
writes stays in the sandbox. With --patch the difference between the first two
follows.

NAME may be a pattern, quoted: '*' stands for any characters, and 'worker-*' for
the workers that litterbox spawn made.`,
		Example: `  litterbox compare try-1 try-2 try-3 --test 'make test'
  litterbox compare 'try-*'
  litterbox compare try-1 try-2 --patch`,
		Args: func(cmd *cobra.Command, args []string) error {
			if chosen.names = args; chosen.wildcard() {
				return nil
			}
			return wantArgs(2, -1)(cmd, args)
		},
		ValidArgsFunction: s.sandboxNames(true, ""),
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("test") && strings.TrimSpace(test) == "" {
				return usageError(cmd, "--test needs a command, not %q", test)
			}
			return nil
		},
		RunE: s.action(func(ctx context.Context, e useCases, dir string, args []string) error {
			if chosen.wildcard() {
				infos, err := chosen.pick(ctx, e.List, dir)
				if err != nil {
					return err
				}
				if len(infos) == 1 {
					return fault.New(fault.Invalid, "cannot compare sandbox %q with itself: no other sandbox is named", infos[0].Name).
						WithHint("litterbox compare %s NAME", infos[0].Name)
				}
				args = namesOf(infos)
			}
			request := engine.CompareRequest{Dir: dir, Names: args}
			if test != "" {
				request.Test = []string{"sh", "-c", test}
				request.Progress = func(name string) { s.console.note("%s: %s", clean(name), clean(test)) }
			}
			found, err := e.Compare(ctx, request)
			if err != nil {
				return err
			}
			if json {
				return s.console.document(list(found))
			}
			if err := showCompared(s.console, found); err != nil || !patch {
				return err
			}
			if err := s.console.print("\n"); err != nil {
				return err
			}
			_, err = e.Diff(ctx, engine.DiffRequest{
				Dir: dir, Name: args[1], With: args[0], Stdin: io.LimitReader(nil, 0), Stdout: s.console.stdout, Stderr: s.console.stderr, Risky: func([]engine.Risk) {},
			})
			return err
		}),
	}
	cmd.Flags().StringVar(&test, "test", "", "run `COMMAND` in each sandbox, without a commit")
	cmd.Flags().BoolVarP(&patch, "patch", "p", false, "also print what differs from the first to the second")
	cmd.Flags().BoolVar(&json, "json", false, "print a JSON array")
	return cmd
}

func showCompared(c *console, found []engine.Compared) error {
	costs := slices.ContainsFunc(found, func(one engine.Compared) bool { return one.Cost != nil })
	title := []string{"NAME", "COMMITS", "FILES", "LINES", "EXIT", "COMMAND", "HEAD"}
	if costs {
		title = append(title, "COST")
	}
	rows := [][]string{title}
	for _, one := range found {
		exit := "-"
		if one.ExitCode != nil {
			exit = strconv.Itoa(*one.ExitCode)
		}
		command := clean(one.Test)
		if runes := []rune(command); len(runes) > 40 {
			command = string(runes[:39]) + "…"
		}
		row := []string{
			clean(one.Name), strconv.Itoa(one.Commits), strconv.Itoa(one.Files), fmt.Sprintf("+%d -%d", one.Added, one.Deleted), exit, command, short(one.Head),
		}
		if costs {
			row = append(row, costText(one.Cost))
		}
		rows = append(rows, row)
	}
	return c.table(rows)
}
