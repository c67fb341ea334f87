package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
)

type branchesOptions struct {
	console *console
	list    func(ctx context.Context, dir, name string) ([]engine.InnerBranch, error)
	take    func(context.Context, engine.TakeBranchRequest) (engine.TakenBranch, error)

	request engine.TakeBranchRequest
	json    bool
}

func newBranches(s *session) *cobra.Command {
	o := &branchesOptions{console: s.console}
	var cmd *cobra.Command
	cmd = &cobra.Command{
		Use:   "branches NAME",
		Short: "List the branches of the git inside, and take one out",
		Long: `List the branches of the git inside a sandbox, including those of worktrees that
an agent has made. Commits that HEAD reaches there are already on the sandbox's own
branch; other branches stay inside until they are taken.

With --take a branch becomes a new branch of your repository. Its commits pass the
same checks as the sandbox's own; it begins at the commit that the sandbox was made
from, and merges of other branches come out along their first parent. The list then
says that it is taken, until it moves inside.`,
		Example: `  litterbox branches fix-login
  litterbox branches fix-login --take experiment
  litterbox branches fix-login --take main --as fix-login-main`,
		Args:              wantArgs(1, 1),
		ValidArgsFunction: s.sandboxNames(false, ""),
		RunE: s.action(func(ctx context.Context, e useCases, dir string, args []string) error {
			o.list, o.take = e.Branches, e.TakeBranch
			o.request.Dir, o.request.Name = dir, args[0]
			if o.request.As != "" && o.request.Branch == "" {
				return usageError(cmd, "--as names what --take brings")
			}
			return runBranches(ctx, o)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&o.request.Branch, "take", "", "bring the branch `BRANCH` of the git inside to your repository")
	_ = cmd.RegisterFlagCompletionFunc("take", s.complete(completeTake)) // fails for a flag that is not there
	f.StringVar(&o.request.As, "as", "", "call it `NAME` there")
	f.BoolVar(&o.json, "json", false, "print a JSON array, with --take one object")
	allowDegradedFlag(cmd, &o.request.AllowDegraded)
	return cmd
}

// completeTake gives the branches that are only inside.
func completeTake(ctx context.Context, e useCases, dir string, args []string, _ string) ([]string, error) {
	if len(args) == 0 {
		return nil, nil
	}
	found, err := e.Branches(ctx, dir, args[0])
	var names []string
	for _, one := range found {
		if one.Apart && one.Taken == "" {
			names = append(names, one.Name)
		}
	}
	return names, err
}

func runBranches(ctx context.Context, o *branchesOptions) error {
	if o.request.Branch != "" {
		taken, err := o.take(ctx, o.request)
		if err != nil {
			return err
		}
		if o.json {
			return o.console.document(taken)
		}
		for _, note := range taken.Notes {
			o.console.note("%s", note)
		}
		return o.console.print("took %s at %s, %s\n", clean(taken.Branch), short(taken.Commit), count(taken.Commits, "commit"))
	}
	found, err := o.list(ctx, o.request.Dir, o.request.Name)
	if err != nil {
		return err
	}
	if o.json {
		return o.console.document(list(found))
	}
	if len(found) == 0 {
		return o.console.print("the git inside %s has no branches\n", clean(o.request.Name))
	}
	rows := [][]string{{"BRANCH", "COMMIT", "ONLY INSIDE"}}
	for _, one := range found {
		only := yesNo(one.Apart)
		if one.Taken != "" {
			only += ", taken as " + clean(one.Taken)
		}
		rows = append(rows, []string{clean(one.Name), short(one.Commit), only})
	}
	return o.console.table(rows)
}
