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
	t := teardown{deleteOptions: o}
	cmd := &cobra.Command{
		Use:   "teardown [--all]",
		Short: "Delete the workers of this repository",
		Long: `Delete the workers of this repository, which litterbox spawn made, with their
branches. You are asked once, and shown what is not merged; --yes answers that
question. The rules of litterbox delete apply to each worker: unmerged work stays
in the trash for a while, and work that is in no commit needs --force.

With --all, every sandbox of this repository goes, and then its goldens, once all
sandboxes are gone.`,
		Example: `  litterbox teardown
  litterbox teardown --all --yes`,
		Args:              wantArgs(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: s.action(func(ctx context.Context, e useCases, dir string, _ []string) error {
			o.delete, o.list, o.count, o.dir = e.Delete, e.List, e.Unmerged, dir
			t.goldens, t.deleteGolden = e.Goldens, e.DeleteGolden
			return t.run(ctx)
		}),
	}
	cmd.Flags().BoolVar(&t.all, "all", false, "every sandbox of this repository, not only the workers, and its goldens")
	o.addFlags(cmd)
	return cmd
}

// teardown is what litterbox teardown needs.
type teardown struct {
	*deleteOptions
	all          bool
	goldens      func(ctx context.Context, dir string) ([]engine.Golden, error)
	deleteGolden func(ctx context.Context, dir, name string) (engine.Golden, error)
}

func (t teardown) run(ctx context.Context) error {
	infos, err := t.list(ctx, t.dir, false)
	if err != nil {
		return err
	}
	if !t.all {
		infos = slices.DeleteFunc(infos, func(info engine.Info) bool { return info.Worker == nil })
		return t.deleteAll(ctx, infos)
	}
	found, err := t.goldens(ctx, t.dir)
	if err != nil {
		return err
	}
	for _, one := range found {
		if !slices.Contains(t.besides, one.Name) { // one name has a golden on each driver
			t.besides = append(t.besides, one.Name)
		}
	}
	if err := t.deleteAll(ctx, infos); err != nil {
		return err
	}
	for _, name := range t.besides {
		gone, err := t.deleteGolden(ctx, t.dir, name)
		if err != nil {
			return err
		}
		if t.json { // the document is the sandboxes'
			t.console.note("deleted golden %s", clean(gone.Name))
		} else if err := t.console.print("deleted golden %s\n", clean(gone.Name)); err != nil {
			return err
		}
	}
	return nil
}

// deleteAll deletes sandboxes that were not named one by one, once the user has
// agreed to what goes with them.
func (o *deleteOptions) deleteAll(ctx context.Context, infos []engine.Info) error {
	if len(infos) == 0 {
		if len(o.besides) > 0 {
			if err := o.agreeBesides(ctx); err != nil || !o.json {
				return err
			}
		}
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
		goldens := ""
		if len(o.besides) > 0 {
			goldens = "\n" + counted(len(o.besides), "golden", "goldens") + ": " + strings.Join(o.besides, ", ")
		}
		yes, err := o.console.ask(ctx, fmt.Sprintf("%s: %s%s\n%s. Delete %s?", counted(len(infos), "sandbox", "sandboxes"), names(infos), goldens, unmerged, map[bool]string{true: "it", false: "them"}[len(infos)+len(o.besides) == 1]))
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

// agreeBesides asks about goldens where there are no sandboxes.
func (o *deleteOptions) agreeBesides(ctx context.Context) error {
	if o.yes || o.force || !o.console.canAsk() {
		return nil
	}
	yes, err := o.console.ask(ctx, fmt.Sprintf("%s: %s. Delete %s?", counted(len(o.besides), "golden", "goldens"), strings.Join(o.besides, ", "),
		map[bool]string{true: "it", false: "them"}[len(o.besides) == 1]))
	if err == nil && !yes {
		err = fault.New(fault.Canceled, "nothing was deleted")
	}
	return err
}

func names(infos []engine.Info) string {
	var all []string
	for _, info := range infos {
		all = append(all, info.Name)
	}
	return strings.Join(all, ", ")
}
