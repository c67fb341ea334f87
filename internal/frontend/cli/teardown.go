package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

func newTeardown(s *session) *cobra.Command {
	o := &deleteOptions{console: s.console}
	var all bool
	cmd := &cobra.Command{
		Use:   "teardown [--all]",
		Short: "Delete the workers of this repository",
		Long: `Delete the workers of this repository, which litterbox spawn made, with their
branches. You are asked once, and shown what is not merged; --yes answers that
question. The rules of litterbox delete apply to each worker: unmerged work stays
in the trash for a while, and work that is in no commit needs --force.`,
		Example: `  litterbox teardown
  litterbox teardown --yes`,
		Args:              wantArgs(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: s.action(func(ctx context.Context, e useCases, dir string, _ []string) error {
			o.delete, o.list, o.count, o.dir = e.Delete, e.List, e.Unmerged, dir
			return runTeardown(ctx, o, all)
		}),
	}
	cmd.Flags().BoolVar(&all, "all", false, "every sandbox of this repository, not only the workers")
	o.addFlags(cmd)
	return cmd
}

func runTeardown(ctx context.Context, o *deleteOptions, all bool) error {
	infos, err := o.list(ctx, o.dir, false)
	if err != nil {
		return err
	}
	if !all {
		infos = slices.DeleteFunc(infos, func(info engine.Info) bool { return info.Worker == nil })
	}
	return o.deleteAll(ctx, infos)
}

// deleteAll deletes sandboxes that were not named one by one, once the user has
// agreed to what goes with them.
func (o *deleteOptions) deleteAll(ctx context.Context, infos []engine.Info) error {
	if len(infos) == 0 {
		if o.json {
			return o.console.document([]engine.DeleteResult{})
		}
		o.console.note("nothing to delete")
		return nil
	}
	names := make([]string, 0, len(infos))
	for _, info := range infos {
		names = append(names, info.Name)
	}
	if !o.yes && !o.force {
		if err := o.agree(ctx, infos); err != nil {
			return err
		}
	}
	return o.deleteEach(ctx, names)
}

// agree names the unmerged commits, and asks about all of them.
func (o *deleteOptions) agree(ctx context.Context, infos []engine.Info) error {
	o.agreed = map[string]int{}
	var losing []string
	for _, info := range infos {
		unmerged, err := o.count(ctx, info)
		if err != nil {
			return err
		}
		if o.agreed[info.Name] = unmerged; unmerged > 0 {
			losing = append(losing, fmt.Sprintf("%s (%s)", info.Name, count(unmerged, "commit")))
		}
	}
	unmerged := "everything in them is merged"
	if len(losing) > 0 {
		unmerged = "not merged: " + strings.Join(losing, ", ")
	}
	if o.console.canAsk() {
		yes, err := o.console.ask(ctx, fmt.Sprintf("%s: %s\n%s. Delete %s?", counted(len(infos), "sandbox", "sandboxes"), names(infos), unmerged, map[bool]string{true: "it", false: "them"}[len(infos) == 1]))
		if err == nil && !yes {
			err = fault.New(fault.Canceled, "nothing was deleted")
		}
		return err
	}
	if len(losing) > 0 {
		return fault.New(fault.Denied, "cannot delete %s: %s", counted(len(infos), "sandbox", "sandboxes"), unmerged).
			WithHint("rerun with --yes: unmerged work stays in the trash for a while")
	}
	return nil
}

func names(infos []engine.Info) string {
	var all []string
	for _, info := range infos {
		all = append(all, info.Name)
	}
	return strings.Join(all, ", ")
}
