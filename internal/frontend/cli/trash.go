package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

func newTrash(s *session) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "trash list|restore|empty",
		Short: "See, restore and empty what was deleted",
		Long: `List and restore deleted sandboxes, and empty the trash. The last commit of each
deleted sandbox stays in the repository until the trash is emptied. If a sandbox
had unmerged work, its files (ignored ones too), its home and its log also stay
for the time that retention.trash sets (7 days unless set), while a tenth of the
disk, or 10 GiB, is free. Files in another machine stay there meanwhile.`,
		Example: `  litterbox trash list
  litterbox trash restore fix-login
  litterbox trash empty --older-than 30d`,
		Args: noSuchTrash,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newTrashList(s), newTrashRestore(s), newTrashEmpty(s))
	return cmd
}

func noSuchTrash(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usageError(cmd, "%q is not one of list, restore, empty", args[0])
}

func newTrashList(s *session) *cobra.Command {
	var all, json bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List what was deleted and can be restored",
		Long: `List the deleted sandboxes of this repository that can be restored: all with their
last commits, and some with their files.`,
		Example: `  litterbox trash list
  litterbox trash list --all --json`,
		Args:              wantArgs(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: s.action(func(ctx context.Context, e useCases, dir string, _ []string) error {
			found, err := e.Trash(ctx, dir, all)
			if err != nil {
				return err
			}
			if json {
				return s.console.document(list(found))
			}
			if len(found) == 0 {
				return s.console.print("the trash is empty\n")
			}
			return showTrash(s.console, found, all)
		}),
	}
	cmd.Flags().BoolVar(&all, "all", false, "include all repositories")
	cmd.Flags().BoolVar(&json, "json", false, "print a JSON array; sizes are in bytes")
	return cmd
}

func showTrash(c *console, found []engine.Trashed, all bool) error {
	rows := [][]string{{"NAME", "DELETED", "UNMERGED", "FILES", "UNTIL", "LAST", "ENTRY"}}
	now := c.now()
	for _, one := range found {
		name, commits, files, until := one.Name, "-", "-", "-"
		if all {
			name = one.Repository + ": " + name
		}
		if one.Files {
			commits, files = fmt.Sprint(one.Commits), amount(one.Bytes)
		}
		if one.Until != nil {
			until = one.Until.Local().Format("2 Jan 15:04")
		}
		rows = append(rows, []string{name, ago(now, one.DeletedAt), commits, files, until, short(one.Tip), one.Entry})
	}
	return c.table(rows)
}

func newTrashRestore(s *session) *cobra.Command {
	var json bool
	cmd := &cobra.Command{
		Use:   "restore NAME",
		Short: "Restore a deleted sandbox",
		Long: `Restore a deleted sandbox: its branch with all commits, and its files, home and log
if they were kept. Without its files it begins at its last commit. Of several with
the same name the newest is restored; to restore another, give its entry from
litterbox trash list. The sandbox is not started: the next command does that.`,
		Example: `  litterbox trash restore fix-login
  litterbox trash restore fix-login-20260102-150405.000000000`,
		Args:              wantArgs(1, 1),
		ValidArgsFunction: s.trashNames(false),
		RunE: s.action(func(ctx context.Context, e useCases, dir string, args []string) error {
			restored, notes, err := e.Restore(ctx, dir, args[0])
			for _, note := range notes {
				s.console.note("%s", note)
			}
			if err != nil {
				return err
			}
			if json {
				return s.console.document(restored)
			}
			with := "its commits, files, home and log"
			if !restored.Files {
				with = "its commits"
			}
			return s.console.print("restored %s at %s with %s\n", clean(restored.Name), short(restored.Tip), with)
		}),
	}
	cmd.Flags().BoolVar(&json, "json", false, "print one JSON object")
	return cmd
}

func newTrashEmpty(s *session) *cobra.Command {
	var request engine.EmptyRequest
	var older string
	var yes, json bool
	cmd := &cobra.Command{
		Use:   "empty [NAME...]",
		Short: "Delete what the trash holds for good",
		Long: `Delete the content of the trash for good: commits that no other branch has, and
files. It lists what would be deleted, and asks. Files in a machine that does not
answer are deleted by the next litterbox trash empty that reaches it.`,
		Example: `  litterbox trash empty fix-login
  litterbox trash empty --older-than 30d --yes`,
		Args:              wantArgs(0, -1),
		ValidArgsFunction: s.trashNames(true),
		RunE: s.action(func(ctx context.Context, e useCases, dir string, args []string) error {
			request.Dir, request.Names = dir, args
			if older != "" {
				before, ok := moment(s.console.now(), older)
				if !ok {
					return fault.New(fault.Invalid, "cannot empty the trash: --older-than must be a duration such as 30d or 12h, not %q", older).
						WithHint("litterbox trash empty --older-than 30d")
				}
				request.Before = before
			}
			if !yes {
				request.Confirm = func(plan []engine.Trashed) (bool, error) {
					if !s.console.canAsk() {
						return false, fault.New(fault.Denied, "emptying the trash needs confirmation").
							WithHint("litterbox trash list, then litterbox trash empty --yes")
					}
					if err := showTrash(s.console, plan, request.All); err != nil {
						return false, err
					}
					return s.console.ask(ctx, "Delete "+count(len(plan), "item")+" for good?")
				}
			}
			gone, err := e.EmptyTrash(ctx, request)
			if json {
				if err != nil {
					return err
				}
				return s.console.document(list(gone))
			}
			var bytes int64
			for _, one := range gone {
				bytes += one.Bytes
			}
			if err != nil {
				return err
			}
			return s.console.print("emptied the trash: %s, %s\n", count(len(gone), "item"), amount(bytes))
		}),
	}
	cmd.Flags().BoolVar(&request.All, "all", false, "include all repositories")
	cmd.Flags().StringVar(&older, "older-than", "", "only what was deleted longer ago, such as 30d or 12h")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	cmd.Flags().BoolVar(&json, "json", false, "print a JSON array; sizes are in bytes")
	return cmd
}

// trashNames completes names of deleted sandboxes.
func (s *session) trashNames(many bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
		dir, err := s.dir.absolute()
		if err != nil || len(args) > 0 && !many {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		e, err := s.engine()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		entries, err := e.Trash(onOwnBehalf(cmd.Context()), dir, false)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var found []cobra.Completion
		seen := map[string]bool{}
		for _, one := range entries {
			name := one.Name
			if seen[name] {
				name = one.Entry // an older one of that name
			}
			seen[name] = true
			if strings.HasPrefix(name, toComplete) {
				found = append(found, cobra.CompletionWithDesc(name, "deleted "+ago(s.console.now(), one.DeletedAt)))
			}
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}
