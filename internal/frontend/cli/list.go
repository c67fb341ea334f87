package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
)

type listOptions struct {
	console *console
	list    func(ctx context.Context, dir string, all bool) ([]engine.Info, error)
	here    func(ctx context.Context, dir string) (infos, strays []engine.Info, err error)
	known   func(driver string) error

	dir    string
	driver string
	all    bool
	json   bool
}

func newList(s *session) *cobra.Command {
	o := &listOptions{console: s.console}
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the sandboxes of this repository",
		Long: `List the sandboxes of this repository, or with --all of every repository.
A narrow terminal shows fewer columns; --json has all of them. BEHIND is the number
of commits that the sandbox's base branch has gained since; litterbox update brings
them in. SESSIONS names what works in a sandbox now: exec, shell, editor and others.

A sandbox that is "unreachable" does not answer, but may still run. It reconnects
by itself, and until then it is neither merged nor started again. litterbox stop
ends it.`,
		Example: `  litterbox list
  litterbox list --all --json`,
		Args:              wantArgs(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: s.action(func(ctx context.Context, e useCases, dir string, _ []string) error {
			o.list, o.here, o.known, o.dir = e.List, e.ListHere, knownDriver(ctx, e), dir
			return runList(ctx, o)
		}),
	}
	cmd.Flags().BoolVar(&o.all, "all", false, "those of every repository")
	s.driverFlag(cmd, &o.driver, "only those of `DRIVER`")
	cmd.Flags().BoolVar(&o.json, "json", false, "print a JSON array")
	return cmd
}

func runList(ctx context.Context, o *listOptions) error {
	var infos, strays []engine.Info
	var err error
	if o.all {
		infos, err = o.list(ctx, o.dir, true)
	} else {
		infos, strays, err = o.here(ctx, o.dir)
	}
	if err != nil {
		return err
	}
	if o.driver != "" {
		if err := o.known(o.driver); err != nil {
			return err
		}
		infos = slices.DeleteFunc(infos, func(info engine.Info) bool { return info.Driver != o.driver })
	}
	if o.json {
		for i := range infos {
			infos[i].Limits, infos[i].Sessions = list(infos[i].Limits), list(infos[i].Sessions)
		}
		return o.console.document(list(infos))
	}
	for _, one := range strays {
		o.console.note("%s has lost its repository, which was at %s; litterbox reattach takes it back here", one.Name, one.Repository)
	}
	if len(infos) == 0 && len(strays) > 0 {
		return nil
	}
	if len(infos) == 0 {
		o.console.note("no sandboxes yet; make one with: litterbox create NAME")
		return nil
	}
	head := []string{"NAME", "STATE", "BRANCH", "HEAD", "STEPS", "ISOLATION", "NETWORK", "LIMITS", "CREATED"}
	costs := slices.ContainsFunc(infos, func(info engine.Info) bool { return info.Cost != nil })
	if costs {
		head = append(head, "COST")
	}
	behind := slices.ContainsFunc(infos, func(info engine.Info) bool { return info.Behind > 0 })
	if behind {
		head = append(head, "BEHIND")
	}
	busy := slices.ContainsFunc(infos, func(info engine.Info) bool { return len(info.Sessions) > 0 })
	if busy {
		head = append(head, "SESSIONS")
	}
	several := severalDrivers(infos)
	if several {
		head = append(head, "DRIVER")
	}
	if o.all {
		head = append(head, "REPOSITORY")
	}
	rows := [][]string{head}
	for _, info := range infos {
		row := []string{
			info.Name, string(info.State), info.Branch, short(info.Head), decimal(info.Iterations),
			string(info.Isolation), info.Network, limitSummary(info.Limits, info.State), ago(o.console.now(), info.CreatedAt),
		}
		if costs {
			row = append(row, costText(info.Cost))
		}
		if behind {
			row = append(row, decimal(info.Behind))
		}
		if busy {
			row = append(row, sessionKinds(info.Sessions))
		}
		if several {
			row = append(row, info.Driver)
		}
		if o.all {
			row = append(row, info.Repository)
		}
		rows = append(rows, row)
	}
	if err := o.console.table(o.console.fit(rows, "LIMITS", "ISOLATION", "HEAD", "NETWORK", "REPOSITORY", "CREATED", "STEPS", "BRANCH")); err != nil {
		return err
	}
	for _, info := range infos {
		if info.Problem != "" {
			o.console.note("%s: %s", info.Name, info.Problem)
		}
	}
	return nil
}

// sessionKinds names the kinds of sessions, each once.
func sessionKinds(sessions []engine.Session) string {
	if len(sessions) == 0 {
		return "-"
	}
	var kinds []string
	for _, one := range sessions {
		if kind := clean(one.Kind); !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	slices.Sort(kinds)
	return strings.Join(kinds, ",")
}
