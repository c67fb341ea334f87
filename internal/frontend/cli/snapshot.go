package cli

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

func newSnapshot(s *session) *cobra.Command {
	var json bool
	cmd := &cobra.Command{
		Use:   "snapshot NAME [LABEL]",
		Short: "Keep all files of a sandbox as they are",
		Long: `Keep all files of a sandbox as they are at this moment: tracked, untracked and
ignored ones, HOME, package caches and the agent's own git, with the iteration,
the policy revision and the environment that belong to them. Files in /tmp are
scratch and stay out. Uncommitted changes are committed first. A LABEL names one
snapshot of the sandbox; one that is in use is refused.

A stopped sandbox takes the same short time whatever its size. A running one is
paused while the files are copied that were written since it was last stopped or
snapshotted, and then goes on.`,
		Example: `  litterbox snapshot fix-login
  litterbox snapshot fix-login before-the-refactoring`,
		Args:              wantArgs(1, 2),
		ValidArgsFunction: s.sandboxNames(false, ""),
		RunE: s.action(func(ctx context.Context, e useCases, dir string, args []string) error {
			label := ""
			if len(args) > 1 {
				label = args[1]
			}
			taken, err := e.TakeSnapshot(ctx, dir, args[0], label)
			if err != nil {
				return err
			}
			if json {
				all, err := e.Snapshots(ctx, dir, args[0]) // which looks at every file for the size
				if err != nil {
					return err
				}
				for _, one := range all {
					if one.ID == taken.ID {
						taken = one
					}
				}
				return s.console.document(taken)
			}
			return s.console.print("snapshot %s of %s at %s\n", named(taken), clean(args[0]), short(taken.Commit))
		}),
	}
	cmd.Flags().BoolVar(&json, "json", false, "print the snapshot as one JSON object")
	cmd.AddCommand(newSnapshotDelete(s))
	return cmd
}

// named is a snapshot with its label.
func named(one engine.Snapshot) string {
	if one.Label == "" {
		return one.Name
	}
	return one.Name + " (" + clean(one.Label) + ")"
}

func newSnapshotDelete(s *session) *cobra.Command {
	var json bool
	cmd := &cobra.Command{
		Use:   "delete NAME SNAPSHOT...",
		Short: "Delete snapshots for good",
		Long: `Delete snapshots for good. Files that the sandbox, another snapshot or a fork
needs stay, and commits stay on their branch.`,
		Example:           "  litterbox snapshot delete fix-login s1 s2",
		Args:              wantArgs(2, -1),
		ValidArgsFunction: s.snapshotNames(true, false),
		RunE: s.action(func(ctx context.Context, e useCases, dir string, args []string) error {
			gone, err := e.DeleteSnapshots(ctx, dir, args[0], args[1:])
			if err != nil {
				return err
			}
			if json {
				return s.console.document(list(gone))
			}
			for _, one := range gone {
				if err := s.console.print("deleted snapshot %s of %s\n", named(one), clean(args[0])); err != nil {
					return err
				}
			}
			return nil
		}),
	}
	cmd.Flags().BoolVar(&json, "json", false, "print a JSON array")
	return cmd
}

func newSnapshots(s *session) *cobra.Command {
	var json bool
	cmd := &cobra.Command{
		Use:   "snapshots NAME",
		Short: "List the snapshots of a sandbox",
		Long: `List the snapshots of a sandbox, oldest first. SIZE is that of all layers of a
snapshot; other snapshots, the sandbox and its forks share them.`,
		Example: `  litterbox snapshots fix-login
  litterbox snapshots fix-login --json`,
		Args:              wantArgs(1, 1),
		ValidArgsFunction: s.sandboxNames(false, ""),
		RunE: s.action(func(ctx context.Context, e useCases, dir string, args []string) error {
			found, err := e.Snapshots(ctx, dir, args[0])
			if err != nil {
				return err
			}
			if json {
				return s.console.document(list(found))
			}
			if len(found) == 0 {
				return s.console.print("%s has no snapshots\n", clean(args[0]))
			}
			rows := [][]string{{"NAME", "LABEL", "TAKEN", "STEP", "COMMIT", "POLICY", "SIZE"}}
			now := s.console.now()
			for _, one := range found {
				label := clean(one.Label)
				if label == "" {
					label = "(" + string(one.Kind) + ")"
				}
				rows = append(rows, []string{one.Name, label, ago(now, one.CreatedAt), strconv.Itoa(one.Iteration), short(one.Commit), strconv.Itoa(one.Policy), amount(one.Bytes)})
			}
			return s.console.table(rows)
		}),
	}
	cmd.Flags().BoolVar(&json, "json", false, "print a JSON array; sizes are in bytes")
	return cmd
}

func newRestore(s *session) *cobra.Command {
	var request engine.RestoreRequest
	var json bool
	cmd := &cobra.Command{
		Use:   "restore NAME SNAPSHOT",
		Short: "Return to a snapshot",
		Long: `Return all files of a sandbox, and its branch, to the state of a snapshot. The
state before that is kept as another snapshot, and restoring it undoes this; the
branch's later commits stay reachable from it. The network policy does not change.

The sandbox is stopped for this, and its next command starts it. --stop, or your
answer on a terminal, ends running commands. litterbox trash restore brings back a
deleted sandbox.`,
		Example: `  litterbox restore fix-login s2
  litterbox restore fix-login before-the-refactoring --keep-branch`,
		Args:              wantArgs(2, 2),
		ValidArgsFunction: s.snapshotNames(false, false),
		RunE: s.action(func(ctx context.Context, e useCases, dir string, args []string) error {
			request.Dir, request.Name, request.Snapshot = dir, args[0], args[1]
			request.ConfirmStop = s.confirmRestore(ctx, args[0])
			result, err := e.RestoreSnapshot(ctx, request)
			if err != nil {
				return err
			}
			return s.console.reverted(result, json)
		}),
	}
	cmd.Flags().BoolVar(&request.KeepBranch, "keep-branch", false, "leave the branch where it is; the next commit says what went back")
	cmd.Flags().BoolVar(&request.Stop, "stop", false, "end what is at work in the sandbox")
	cmd.Flags().BoolVar(&json, "json", false, "print what was done as one JSON object")
	return cmd
}

// confirmRestore asks on a terminal before work is ended.
func (s *session) confirmRestore(ctx context.Context, name string) func([]engine.Work) (bool, error) {
	if !s.console.canAsk() {
		return nil
	}
	return func(work []engine.Work) (bool, error) {
		return s.console.askToEnd(ctx, name, work, "End it and go back?")
	}
}

func (c *console) reverted(result engine.Reverted, json bool) error {
	c.noteWork("ended", result.Ended)
	if json {
		result.Ended = list(result.Ended)
		return c.document(result)
	}
	branch := "its branch is at " + short(result.Commit)
	if result.Kept {
		branch = "its branch stays at " + short(result.Commit)
	}
	undo := ""
	if result.Before != "" {
		undo = "  undo: litterbox restore " + clean(result.Name) + " " + result.Before + "\n"
	}
	return c.print("%s is as it was at %s; %s\n%s", clean(result.Name), result.To, branch, undo)
}

func newRewind(s *session) *cobra.Command {
	var request engine.RewindRequest
	var json bool
	cmd := &cobra.Command{
		Use:   "rewind NAME ITERATION",
		Short: "Return to an iteration",
		Long: `Return the files and the branch of a sandbox to their state after an iteration,
given by its number in litterbox log. If a snapshot was taken between it and the
next one, that snapshot is restored, as by litterbox restore. Otherwise the files
come from the commit: ignored files, HOME and the agent's own git stay as they
are, and running commands go on. The state before is kept as a snapshot either way.`,
		Example:           "  litterbox rewind fix-login 3",
		Args:              wantArgs(2, 2),
		ValidArgsFunction: s.snapshotNames(false, true),
		RunE: func(cmd *cobra.Command, args []string) error {
			number, err := strconv.Atoi(args[1])
			if err != nil || number < 1 {
				if _, is := sandbox.SnapshotNumber(args[1]); is {
					return fault.New(fault.Invalid, "cannot rewind to %q: it is a snapshot, and not the number of an iteration", args[1]).
						WithHint("litterbox restore %s %s", args[0], args[1])
				}
				return usageError(cmd, "%q is not an iteration's number: see litterbox log %s", args[1], args[0])
			}
			return s.action(func(ctx context.Context, e useCases, dir string, args []string) error {
				request.Dir, request.Name, request.Iteration = dir, args[0], number
				request.ConfirmStop = s.confirmRestore(ctx, args[0])
				result, err := e.Rewind(ctx, request)
				if err != nil {
					return err
				}
				return s.console.reverted(result, json)
			})(cmd, args)
		},
	}
	cmd.Flags().BoolVar(&request.Commits, "commits", false, "take the files from the commit, also where there is a snapshot")
	cmd.Flags().BoolVar(&request.Stop, "stop", false, "end what is at work, where a snapshot is restored")
	cmd.Flags().BoolVar(&json, "json", false, "print what was done as one JSON object")
	return cmd
}

// snapshotNames completes a sandbox, and then its snapshots, or the numbers of
// its iterations.
func (s *session) snapshotNames(many, iterations bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return s.sandboxNames(false, "")(cmd, args, toComplete)
		}
		if len(args) > 1 && !many {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var found []cobra.Completion
		for _, one := range s.points(cmd, args[0], !iterations, iterations) {
			if strings.HasPrefix(one, toComplete) {
				found = append(found, one)
			}
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

// statesOf completes snapshots and iterations of a sandbox.
func (s *session) statesOf(cmd *cobra.Command, name, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var found []cobra.Completion
	for _, one := range s.points(cmd, name, true, true) {
		if strings.HasPrefix(one, toComplete) {
			found = append(found, one)
		}
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}

// points lists what a sandbox can go back to, each with a description.
func (s *session) points(cmd *cobra.Command, name string, snapshots, iterations bool) []cobra.Completion {
	ctx := cmd.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	dir, err := s.dir.absolute()
	if err != nil {
		return nil
	}
	e, err := s.engine()
	if err != nil {
		return nil
	}
	var found []cobra.Completion
	if snapshots {
		all, _ := e.Snapshots(ctx, dir, name) // a shell has nowhere to show an error
		for _, one := range all {
			found = append(found, cobra.CompletionWithDesc(one.Name, one.Label+" "+ago(s.console.now(), one.CreatedAt)))
		}
	}
	if iterations {
		all, _ := e.Log(ctx, dir, name)
		for _, it := range all {
			if it.Commit != "" {
				found = append(found, cobra.CompletionWithDesc(strconv.Itoa(it.Number), clean(it.Message)))
			}
		}
	}
	return found
}
