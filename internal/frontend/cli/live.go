package cli

import (
	"cmp"
	"context"
	"errors"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

func newEnv(s *session) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "env shell|list|delete",
		Short: "Work in the project directory itself, isolated",
		Long: `Work in the project directory itself, at its own path, isolated: a live
environment. Files are written directly, without a separate branch, and a commit
inside is a commit in the checkout. Everything else is as isolated as in any
sandbox: network, limits, secrets, services and ports come from .litterbox.toml,
and the environment has its own home.

Git's configuration and hooks, the repositories of submodules, and files at the
top of the project that run code outside by themselves or at the next install,
build or test are read-only inside.`,
		Example: `  litterbox env shell
  litterbox env shell ~/project -- npm test
  litterbox env list
  litterbox env delete ~/project`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return usageError(cmd, "%q is not one of shell, list, delete", args[0])
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newEnvShell(s), newEnvList(s), newEnvDelete(s))
	return cmd
}

func newEnvShell(s *session) *cobra.Command {
	o := &execOptions{console: s.console, kind: "shell", noCommit: true}
	var writable bool
	cmd := &cobra.Command{
		Use:   "shell [PATH] [flags] [-- CMD...]",
		Short: "Open a shell in the project directory itself",
		Long: `Open your shell, or run CMD, in the live environment of the project at PATH (the
current directory unless given), and make the environment if it is missing. In a
repository the project is the whole checkout. Many shells may be open at once; all
share one view. Broken or missing parts of the environment are made again.

Git's HEAD and index come from the checkout and go back to it, within a second
and when CMD ends. So a commit inside is on the checkout's branch. Refs and
objects are writable; the rest of the git directory is not: its configuration,
hooks, attributes, and the repositories of submodules. Files and directories at
the top that a merge would ask about, because they run code outside, are
read-only too; new ones that CMD has added are named when it ends.

With --writable-git all of that is writable: anything that CMD leaves in
.git/config or in a hook runs on this machine the next time you use git.`,
		Example: `  litterbox env shell
  litterbox env shell ~/project -- go test ./...`,
		Args:        cobra.ArbitraryArgs,
		Annotations: passThrough(),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveDefault
			}
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			project, argv, err := pathAndCommand(cmd, args)
			if err != nil {
				return err
			}
			if err := o.check(cmd); err != nil {
				return err
			}
			if o.argv = argv; len(argv) == 0 {
				o.argv = shellOf(s.console)
			}
			return s.command(cmd, func(ctx context.Context, e useCases, dir string) error {
				o.dir, o.name = filepath.Clean(hostPath(dir, project)), "environment"
				o.exec = func(ctx context.Context, r engine.ExecRequest) (engine.ExecResult, error) {
					if len(argv) == 0 {
						r.Command = "a shell"
					}
					result, err := e.EnvironmentShell(ctx, engine.EnvironmentRequest{Path: o.dir, WritableGit: writable, Exec: r})
					o.name = cmp.Or(result.Environment, o.name)
					return result, err
				}
				return runExec(ctx, o)
			})
		},
	}
	f := cmd.Flags()
	f.BoolVar(&writable, "writable-git", false, "let CMD write git's configuration, hooks, and files that run by themselves")
	f.DurationVar(&o.timeout, "timeout", 0, "end CMD after `D`, such as 90s or 10m")
	o.env.addFlags(cmd)
	f.BoolVar(&o.json, "json", false, "print result and captured output as one JSON object")
	allowDegradedFlag(cmd, &o.allowDegraded)
	return cmd
}

// pathAndCommand splits [PATH] [-- CMD...].
func pathAndCommand(cmd *cobra.Command, args []string) (project string, argv []string, err error) {
	dash := cmd.ArgsLenAtDash()
	before := args
	if dash >= 0 {
		before, argv = args[:dash], args[dash:]
	}
	switch {
	case len(before) > 1:
		return "", nil, usageError(cmd, "more than one PATH; a command comes after --")
	case dash >= 0 && len(argv) == 0:
		return "", nil, usageError(cmd, "no command after --")
	case len(before) == 1:
		return before[0], argv, nil
	}
	return ".", argv, nil
}

// shellOf starts the user's shell inside, or sh where it does not exist there.
func shellOf(c *console) []string {
	mine := path.Base(c.env("SHELL"))
	if mine == "." || mine == "/" || strings.HasPrefix(mine, "-") {
		mine = "sh"
	}
	return []string{"sh", "-c", `command -v "$1" >/dev/null && exec "$1"; exec sh`, "sh", mine}
}

func newEnvList(s *session) *cobra.Command {
	var json bool
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the live environments",
		Long: `List the live environments of all projects: their directories, whether they run,
and how many commands run in them. GIT is "writable" where --writable-git was given.`,
		Example: `  litterbox env list
  litterbox env list --json`,
		Args:              wantArgs(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: s.action(func(ctx context.Context, e useCases, _ string, _ []string) error {
			found, err := e.Environments(ctx)
			if err != nil {
				return err
			}
			if json {
				return s.console.document(list(found))
			}
			return showEnvironments(s.console, found)
		}),
	}
	cmd.Flags().BoolVar(&json, "json", false, "print a JSON array")
	return cmd
}

func showEnvironments(c *console, found []engine.Environment) error {
	if len(found) == 0 {
		c.note("no environments yet; make one with: litterbox env shell")
		return nil
	}
	rows := [][]string{{"NAME", "STATE", "COMMANDS", "GIT", "ISOLATION", "NETWORK", "CREATED", "PATH"}}
	for _, one := range found {
		git := "protected"
		if one.WritableGit {
			git = "writable"
		}
		rows = append(rows, []string{one.Name, string(one.State), decimal(one.Commands), git, string(one.Isolation), one.Network, ago(c.now(), one.CreatedAt), one.Path})
	}
	if err := c.table(c.fit(rows, "ISOLATION", "NETWORK", "CREATED", "COMMANDS")); err != nil {
		return err
	}
	for _, one := range found {
		if one.Problem != "" {
			c.note("%s: %s", one.Name, one.Problem)
		}
	}
	return nil
}

func newEnvDelete(s *session) *cobra.Command {
	var r engine.EnvironmentDeletion
	var json bool
	cmd := &cobra.Command{
		Use:   "delete [PATH]",
		Short: "Delete live environments, never the projects' files",
		Long: `Delete the live environment of the project at PATH (the current directory unless
given), or with --all every one: its home, with all that is installed there, and its
log. The project's files stay as they are. Services and background processes are
ended. Deleting an environment in which other commands run needs --stop.

PATH may also be the name that litterbox env list shows.`,
		Example: `  litterbox env delete ~/project
  litterbox env delete --all`,
		Args:              wantArgs(0, 1),
		ValidArgsFunction: s.environmentNames,
		RunE: s.action(func(ctx context.Context, e useCases, dir string, args []string) error {
			if r.All && len(args) > 0 {
				return fault.New(fault.Invalid, "cannot delete environments: --all and a PATH exclude each other").WithHint("litterbox env delete --all")
			}
			r.Path = dir
			if len(args) == 1 {
				r.Path = filepath.Clean(hostPath(dir, args[0]))
			}
			deleted, err := e.DeleteEnvironments(ctx, r)
			if json {
				return errors.Join(err, s.console.document(list(deleted)))
			}
			if err == nil && len(deleted) == 0 {
				s.console.note("there are no environments to delete")
			}
			for _, one := range deleted {
				err = errors.Join(err, s.console.print("deleted %s; the files of %s stay\n", clean(one.Name), clean(one.Path)))
			}
			return err
		}),
	}
	cmd.Flags().BoolVar(&r.All, "all", false, "every environment of yours")
	cmd.Flags().BoolVar(&r.Stop, "stop", false, "also where commands run, which are ended")
	cmd.Flags().BoolVar(&json, "json", false, "print a JSON array")
	return cmd
}

// environmentNames completes the names of environments, and directories where none
// fits.
func (s *session) environmentNames(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names, directive := s.complete(func(ctx context.Context, e useCases, _ string, _ []string, _ string) ([]string, error) {
		found, err := e.Environments(ctx)
		var names []string
		for _, one := range found {
			names = append(names, one.Name)
		}
		return names, err
	})(cmd, args, toComplete)
	if len(names) == 0 {
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
	return names, directive
}
