package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
)

type execOptions struct {
	console *console
	exec    func(context.Context, engine.ExecRequest) (engine.ExecResult, error)
	finds   func(ctx context.Context, place engine.Place, program string, allowDegraded bool) (bool, error)

	dir, name     string
	argv          []string
	kind          string // exec or shell
	interactive   bool   // argv is the user's shell
	message       string
	timeout       time.Duration
	noCommit      bool
	env           environment
	workDir       string
	here          string // where the user stands in the project, unless workDir says something else
	allowDegraded bool
	driver        string // that run was given
	ask           bool
	json          bool
	many          manyOptions
}

func newExec(s *session) *cobra.Command {
	o := &execOptions{console: s.console, kind: "exec"}
	cmd := &cobra.Command{
		Use:   "exec NAME | PATTERN | --all [flags] -- CMD...",
		Short: "Run one command and commit what it did",
		Long: `Run one command in a sandbox and commit what it did to the files, even if it
fails. The exit code of the command is that of litterbox; 125 means that
litterbox itself failed. Interrupts and a timeout end the command's whole
process group, and what it did is still committed.

With --ask, a destination that no rule allows is not refused at once: you are
asked on your terminal, and may allow it while CMD runs, for the sandbox, for the
repository (in .litterbox.toml), or never; one answer refuses everything from then
on. Keys that you press before the question is complete are ignored.

CMD becomes part of the commit and of the logs, with secrets redacted: tokens,
values of variables and flags that are named like secrets, and values given with
-e. docs/security.md lists what is recognised. -e NAME passes on your own variable,
and --env-file takes values from a file or from standard input, so that no value
shows in this machine's list of processes.

Destinations that the network refused are named after the output, with the
litterbox allow command that opens them.

CMD runs in the current directory: in src/ of your checkout, it runs in src/ inside.

The -- may be left out when CMD does not begin with a dash and no flags follow.

With --all CMD runs in every sandbox of this repository, and with a quoted pattern
in those whose names match: '*' stands for any characters, and 'worker-*' for the
workers that litterbox spawn made. Each line is printed with the sandbox in front
of it, each sandbox has a log, and a table comes at the end. The exit code is the
number of sandboxes in which CMD or litterbox failed; 101 means more than 100.
Ctrl-C interrupts CMD everywhere, and no further sandbox starts it.`,
		Example: `  litterbox exec fix-login -- go test ./...
  litterbox exec 'worker-*' --parallel 4 -- make test
  litterbox exec fix-login -m 'Run the linter' --timeout 5m -- make lint`,
		Args:              wantArgs(1, -1),
		Annotations:       passThrough(),
		ValidArgsFunction: s.sandboxNames(false, ""),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, argv, err := "", args, error(nil)
			if !o.many.chosen.all {
				name, argv, err = commandAfterName(cmd, args)
			}
			if err != nil || argv == nil {
				return err
			}
			switch {
			case o.many.chosen.all && name != "":
				return usageError(cmd, "a sandbox name and --all exclude each other")
			case len(argv) == 0 && name == "":
				return usageError(cmd, "no command after --all")
			case len(argv) == 0:
				return usageError(cmd, "no command after %q", name)
			}
			if err := o.check(cmd); err != nil {
				return err
			}
			several := o.many.chosen.all || isPattern(name)
			if err := o.many.check(cmd, several, o.ask); err != nil {
				return err
			}
			o.name, o.argv = name, argv
			return s.command(cmd, func(ctx context.Context, e useCases, dir string) error {
				o.exec, o.dir = e.Exec, dir
				o.standIn(e, dir)
				if several {
					if name != "" {
						o.many.chosen.names = []string{name}
					}
					o.many.list, o.many.log = e.List, e.NewCommandLog
					return runExecMany(ctx, o)
				}
				return runExec(ctx, o)
			})
		},
	}
	// Flags end at NAME; commandAfterName reads those between it and CMD.
	cmd.Flags().SetInterspersed(false)
	o.addFlags(cmd)
	cmd.Flags().BoolVar(&o.noCommit, "no-commit", false, "leave the changes for the next commit")
	cmd.Flags().BoolVar(&o.json, "json", false, "print result and captured output as one JSON object,\nor as an array for several sandboxes")
	o.many.addFlags(cmd)
	return cmd
}

// addFlags adds the flags that exec and run share.
func (o *execOptions) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	messageFlag(f, &o.message, "`MESSAGE`: first line of the commit (default: made from CMD)")
	f.DurationVar(&o.timeout, "timeout", 0, "end CMD after `D`, such as 90s or 10m")
	o.env.addFlags(cmd)
	f.StringVarP(&o.workDir, "workdir", "w", "", "run CMD in `DIR` of the project (default: the current directory)")
	allowDegradedFlag(cmd, &o.allowDegraded)
	askFlag(cmd, &o.ask)
}

func (o *execOptions) check(cmd *cobra.Command) error {
	switch {
	case o.timeout < 0:
		return usageError(cmd, "--timeout %s must be positive", o.timeout)
	case o.noCommit && o.message != "":
		return usageError(cmd, "-m names a commit, and --no-commit makes none")
	}
	return o.env.read(cmd, o.console)
}

// commandAfterName splits NAME [flags] [--] CMD... after cobra has parsed the flags
// before NAME. It gives a nil argv when the user asked for help and got it, an
// empty one when nothing follows.
func commandAfterName(cmd *cobra.Command, args []string) (name string, argv []string, err error) {
	if cmd.ArgsLenAtDash() == 0 {
		return "", nil, usageError(cmd, "no sandbox name before --")
	}
	if err := cmd.Flags().Parse(args[1:]); err != nil {
		return "", nil, cmd.FlagErrorFunc()(cmd, err)
	}
	if help, _ := cmd.Flags().GetBool("help"); help {
		return "", nil, cmd.Help()
	}
	return args[0], append([]string{}, cmd.Flags().Args()...), nil
}

// command runs a use case that relays signals itself.
func (s *session) command(cmd *cobra.Command, run func(ctx context.Context, e useCases, dir string) error) error {
	dir, err := s.dir.absolute()
	if err != nil {
		return err
	}
	e, err := s.engine()
	if err != nil {
		return err
	}
	return run(onOwnBehalf(cmd.Context()), e, dir)
}

func runExec(ctx context.Context, o *execOptions) error {
	var captured *capture
	if o.json {
		captured = &capture{}
	}
	if err := o.console.checkAsk(o.ask); err != nil {
		return err
	}
	ctx, a := o.console.attach(ctx, captured, o.ask)
	defer a.detach()
	result, err := o.exec(ctx, engine.ExecRequest{
		Dir: o.dir, Name: o.name, Argv: o.argv, Kind: o.kind, Interactive: o.interactive, Message: o.message, Timeout: o.timeout, NoCommit: o.noCommit,
		Env: o.env.values, WorkDir: o.directory(), Streams: a.streams, AllowDegraded: o.allowDegraded, Driver: o.driver, Ask: a.ask,
		Refusals: !o.ask, // else they were asked about
	})
	a.detach() // before anything is printed: raw mode has no line breaks
	if err != nil {
		return o.lost(err)
	}
	if o.json {
		if err := o.console.document(captured.document(o.name, result)); err != nil {
			return err
		}
		return statusError(result.Exit.Code)
	}
	if result.Exit.TimedOut && o.timeout > 0 {
		o.console.note("timed out after %s", o.timeout)
	}
	o.console.noteRefused(o.name, result.Refused)
	o.console.notes(result.Notes)
	for _, p := range result.Exit.Background {
		o.console.note("still running: %d %s", p.PID, p.Command)
	}
	if len(result.Exit.Background) > 0 && result.Exit.Output != "" {
		o.console.note("their further output goes to %s inside", result.Exit.Output)
	}
	if o.kind == "shell" && a.streams.Terminal != nil {
		o.console.noteCommitted(result.Iteration)
	}
	return statusError(result.Exit.Code)
}
