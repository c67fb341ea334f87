package cli

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// completer gives the possible values of an argument, after the arguments before
// it.
type completer func(ctx context.Context, e useCases, dir string, args []string, toComplete string) ([]string, error)

// thenComplete completes the name of a sandbox and, after it, the values of more.
func (s *session) thenComplete(more completer) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return s.sandboxNames(false, "")(cmd, args, toComplete)
		}
		return s.complete(more)(cmd, args, toComplete)
	}
}

// complete completes what more gives. An error gives no completion: a shell has
// nowhere to show it.
func (s *session) complete(more completer) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
		ctx := onOwnBehalf(cmd.Context())
		dir, err := s.dir.absolute()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		e, err := s.engine()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		found, err := more(ctx, e, dir, args, toComplete)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		directive := cobra.ShellCompDirectiveNoFileComp
		var fitting []cobra.Completion
		for _, one := range found {
			if !strings.HasPrefix(one, toComplete) {
				continue
			}
			if fitting = append(fitting, one); strings.HasSuffix(one, "/") || strings.HasSuffix(one, "=") {
				directive |= cobra.ShellCompDirectiveNoSpace // more of it follows
			}
		}
		return fitting, directive
	}
}

// completeService gives the actions on services, and their names.
func completeService(ctx context.Context, e useCases, dir string, args []string, _ string) ([]string, error) {
	if len(args) == 1 {
		return []string{"start", "stop", "restart", "status", "logs"}, nil
	}
	result, err := e.Service(ctx, engine.ServiceRequest{Dir: dir, Name: args[0], Action: "status"})
	var names []string
	for _, one := range result.Services {
		if !slices.Contains(args[2:], one.Name) {
			names = append(names, one.Name)
		}
	}
	return names, err
}

// completePort gives the names of forwarded ports.
func completePort(ctx context.Context, e useCases, dir string, args []string, _ string) ([]string, error) {
	if len(args) > 1 {
		return nil, nil
	}
	ports, err := e.Ports(ctx, dir, args[0])
	var names []string
	for _, one := range ports {
		names = append(names, one.Name)
	}
	return names, err
}

// completeRule gives the presets of network rules.
func completeRule(ctx context.Context, e useCases, _ string, args []string, _ string) ([]string, error) {
	var names []string
	for _, one := range e.Presets(ctx) {
		if name := "preset:" + one.Name; !slices.Contains(args[1:], name) {
			names = append(names, name)
		}
	}
	return names, nil
}

// completeLimit gives the names of limits.
func completeLimit(_ context.Context, _ useCases, _ string, args []string, _ string) ([]string, error) {
	var names []string
	for _, name := range sandbox.LimitNames() {
		if !slices.ContainsFunc(args[1:], func(arg string) bool { return strings.HasPrefix(arg, name+"=") }) {
			names = append(names, name+"=")
		}
	}
	return names, nil
}

// completePath gives files of a sandbox's branch, a directory at a time. The
// sandbox is not started for it.
func completePath(ctx context.Context, e useCases, dir string, args []string, toComplete string) ([]string, error) {
	if len(args) > 1 {
		return nil, nil
	}
	return pathsInside(ctx, e, dir, args[0], toComplete)
}

func pathsInside(ctx context.Context, e useCases, dir, name, toComplete string) ([]string, error) {
	typed, _ := path.Split(toComplete)
	found, err := e.Tree(ctx, dir, name, inHere(e.Within(dir), typed+"."))
	for i := range found {
		found[i] = typed + found[i]
	}
	return found, err
}

// completeRef gives branches, tags and remote branches.
func completeRef(ctx context.Context, e useCases, dir string, _ []string, _ string) ([]string, error) {
	return e.Refs(ctx, dir)
}

// completeRuns gives the sandboxes in which an agent works or has worked, and for the
// logs also deleted ones.
func completeRuns(deleted bool) completer {
	return func(ctx context.Context, e useCases, dir string, args []string, _ string) ([]string, error) {
		if len(args) > 0 {
			return nil, nil
		}
		runs, err := e.Runs(ctx, dir, "")
		var names []string
		for _, run := range runs {
			if (deleted || !run.Deleted) && !slices.Contains(names, run.Sandbox) {
				names = append(names, run.Sandbox)
			}
		}
		return names, err
	}
}

// plainFlags makes the descriptions of flags single lines: backquotes name a value for
// the help page alone, and shells show one line.
func plainFlags(cmd *cobra.Command) {
	plain := func(f *pflag.Flag) { f.Usage = strings.NewReplacer("`", "", "\n", " ").Replace(f.Usage) }
	cmd.Flags().VisitAll(plain)
	cmd.PersistentFlags().VisitAll(plain)
	for _, below := range cmd.Commands() {
		plainFlags(below)
	}
}
