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

// agentRunOptions are those of agent run, resume, attach and logs.
type agentRunOptions struct {
	console *console
	e       useCases
	dir     string

	client, prompt string
	name           string
	in             string
	fresh          bool     // --new
	driver         string   // of a new sandbox
	machines       []string // or the ones to choose from
	placing        *engine.Placing
	taken          string // what placing has chosen
	task           engine.AgentTask
	env            environment
	budget         string
	detach         bool
	interactive    bool
	locked         bool
	tasks          string
	file           string // that the task is read from
	parallel       int
	json           bool
}

func newAgentRun(s *session) *cobra.Command {
	o := &agentRunOptions{console: s.console}
	cmd := &cobra.Command{
		Use:   "run CLIENT [PROMPT|-] [flags] [-- ARGS...]",
		Short: "Let an agent work in a sandbox",
		Long: `Run an agent's client (` + strings.Join(engine.AgentClients(), ", ") + `, or one of [agents] in your
configuration) inside a sandbox on a task, with its own tools and without asking
for permission. The sandbox is made if it does not exist, and named after the task.
The agent's changes are committed while it works, and its progress is shown in
lines. At the end come the outcome and the commands to type next. The exit code is
the client's own, and never 0 when it reports that its task failed.

PROMPT is the task; - reads it from standard input. Without one, or with
--interactive, the client's full-screen interface opens on your terminal: Ctrl-]
and then d leaves it, and litterbox agent attach comes back to it. A run continues
when the terminal is closed or the connection is lost.

The client of this machine is used if the sandbox can see it; otherwise npm
installs it once, for all sandboxes. A preset of its name allows the hosts that it
needs, and is shown. --with-packages adds those of the package managers that the
repository's files name; on a terminal a new sandbox asks.

Your own instructions for the client (CLAUDE.md, AGENTS.md, GEMINI.md in its
directory below HOME) and those of its settings that run no program are copied
in, again at each run. --settings all adds hooks, status lines, MCP servers,
commands and skills, which then run inside; --settings none leaves all out.

With --tasks each line of a file, or each file of a directory, is a separate task
in a separate sandbox.
--machine makes a new sandbox on another machine, --machines on the one with most
memory and processors free; with --tasks it spreads the sandboxes over them.
Arguments after -- go to the client.`,
		Example: `  litterbox agent run claude 'Fix the flaky login test'
  litterbox agent run codex --file task.md --name upgrade --time 30m --detach
  litterbox agent run gemini
  litterbox agent run claude --tasks tasks.txt --parallel 4
  litterbox agent run claude --tasks tasks.txt --parallel 8 --machines big,bigger`,
		Args:              wantArgs(0, -1), // missing arguments are named below
		Annotations:       passThrough(),
		ValidArgsFunction: s.completeClients,
	}
	f := cmd.Flags()
	f.StringVar(&o.name, "name", "", "`NAME` of the sandbox; made when it is missing (default: from PROMPT)")
	f.StringVar(&o.in, "in", "", "work in the existing sandbox `NAME`")
	f.BoolVar(&o.fresh, "new", false, "always make a new sandbox")
	f.BoolVarP(&o.interactive, "interactive", "i", false, "open the client's own full-screen interface, with PROMPT as its first task")
	f.BoolVarP(&o.detach, "detach", "d", false, "return at once; the agent keeps working")
	f.StringVar(&o.tasks, "tasks", "", "a task from each line of `FILE`, - for standard input, or from\neach file of a directory")
	f.IntVar(&o.parallel, "parallel", 1, "with --tasks: how many work at once")
	o.flags(cmd)
	s.driverFlag(cmd, &o.driver, chosenDriver)
	s.machinesFlag(cmd, &o.machines, "make it on one of the machines `NAMES`, such as big,bigger, with --tasks on all of them")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := o.arguments(cmd, args); err != nil {
			return err
		}
		return s.command(cmd, func(ctx context.Context, e useCases, dir string) error {
			o.e, o.dir = e, dir
			if o.tasks != "" {
				return runAgentTasks(ctx, o)
			}
			return runAgentRun(ctx, o)
		})
	}
	_ = cmd.RegisterFlagCompletionFunc("in", func(cmd *cobra.Command, _ []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return s.sandboxNames(false, "")(cmd, nil, toComplete)
	})
	return cmd
}

// flags are those of run and resume.
func (o *agentRunOptions) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVarP(&o.file, "file", "f", "", "read the task from `FILE` instead of PROMPT")
	f.StringVar(&o.task.Model, "model", "", "the `MODEL`, as the client calls it")
	f.StringVar(&o.budget, "budget", "", "what calls of models may cost in this sandbox, such as `5USD`")
	f.DurationVar(&o.task.Time, "time", 0, "end it after `D`, such as 30m")
	f.BoolVar(&o.task.Packages, "with-packages", false, "allow the package managers that the repository's files name")
	f.BoolVar(&o.locked, "locked", false, "allow no package managers, and do not ask")
	f.StringVar(&o.task.Settings, "settings", engine.SettingsHarmless, "which of your own instructions and settings of the client are copied in:\n`WHICH` is harmless, all or none")
	_ = cmd.RegisterFlagCompletionFunc("settings", cobra.FixedCompletions(engine.SettingsChoices(), cobra.ShellCompDirectiveNoFileComp))
	f.DurationVar(&o.task.Quiet, "checkpoint", engine.CheckpointQuiet, "commit when its files have been quiet for `D`")
	f.BoolVar(&o.task.NoCheckpoints, "no-checkpoints", false, "commit at the end only")
	o.env.addFlags(cmd)
	f.BoolVar(&o.json, "json", false, "print events, each as one line of JSON")
	allowDegradedFlag(cmd, &o.task.AllowDegraded)
}

// completeClients completes the first argument.
func (s *session) completeClients(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names, err := s.clients(onOwnBehalf(cmd.Context()))
	if err != nil {
		names = engine.AgentClients() // outside of a repository
	}
	var found []cobra.Completion
	for _, name := range names {
		if strings.HasPrefix(name, toComplete) {
			found = append(found, name)
		}
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}

// clients are those that agent run knows here.
func (s *session) clients(ctx context.Context) ([]string, error) {
	dir, err := s.dir.absolute()
	if err != nil {
		return nil, err
	}
	e, err := s.engine()
	if err != nil {
		return nil, err
	}
	return e.InsideAgents(ctx, dir)
}

// arguments reads CLIENT [PROMPT] [-- ARGS...].
func (o *agentRunOptions) arguments(cmd *cobra.Command, args []string) error {
	own := len(args)
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		own = dash
		o.task.Extra = args[dash:]
	}
	switch {
	case own == 0:
		return usageError(cmd, "no client given: it is one of %s", strings.Join(engine.AgentClients(), ", "))
	case own > 2:
		return usageError(cmd, "PROMPT is %d words: quote it", own-1)
	}
	o.client = args[0]
	if own == 2 {
		o.prompt = args[1]
	}
	switch {
	case o.fresh && o.in != "", o.name != "" && o.in != "":
		return usageError(cmd, "--in is for an existing sandbox, --name and --new are for a new one")
	case o.in != "" && (o.driver != "" || len(o.machines) > 0):
		return usageError(cmd, "--in is for an existing sandbox, which stays where it is")
	case o.task.Time < 0:
		return usageError(cmd, "--time %s must be positive", o.task.Time)
	case o.task.Quiet <= 0:
		return usageError(cmd, "--checkpoint %s must be positive; --no-checkpoints turns them off", o.task.Quiet)
	case o.locked && o.task.Packages:
		return usageError(cmd, "--locked and --with-packages exclude each other")
	case !slices.Contains(engine.SettingsChoices(), o.task.Settings):
		return usageError(cmd, "--settings %q is not one of %s", o.task.Settings, strings.Join(engine.SettingsChoices(), ", "))
	case o.parallel < 1:
		return usageError(cmd, "--parallel must be at least 1, not %d", o.parallel)
	case o.tasks != "" && (o.in != "" || o.name != "" || o.interactive || o.file != "" || own == 2 && o.prompt != "-"):
		return usageError(cmd, "--tasks makes a sandbox for each task, named after it")
	case o.tasks == "" && cmd.Flags().Changed("parallel"):
		return usageError(cmd, "--parallel is for --tasks: one task is one agent")
	case own == 2 && strings.TrimSpace(args[1]) == "":
		return usageError(cmd, "PROMPT is empty; without PROMPT the client's full-screen interface opens")
	case o.tasks != "" && o.detach:
		return usageError(cmd, "--tasks begins one task after another, and --detach would end that")
	case o.file != "" && own == 2:
		return usageError(cmd, "--file and PROMPT exclude each other")
	case slices.Contains(o.env.files, "-") && (o.prompt == "-" || o.file == "-" || o.tasks == "-"):
		return usageError(cmd, "standard input cannot be both the task and --env-file")
	case o.json && o.interactive:
		return usageError(cmd, "--json prints events, and a full-screen interface has none")
	}
	if o.prompt == "-" && o.tasks == "" {
		o.file = "-"
	}
	if o.file != "" {
		content, err := o.console.readAll(o.file)
		if err != nil {
			return fault.Wrap(fault.Invalid, err, "cannot read the task")
		}
		if o.prompt = strings.TrimSpace(string(content)); o.prompt == "" {
			from := fmt.Sprintf("%q", o.file)
			if o.file == "-" {
				from = "standard input"
			}
			return fault.New(fault.Invalid, "cannot run an agent: %s holds no task", from)
		}
	}
	o.task.Budget = spaced(o.budget)
	return o.env.read(cmd, o.console)
}

// spaced puts a space before the unit of an amount, which would need quotes in a
// shell.
func spaced(amount string) string {
	unit := strings.TrimLeft(amount, "0123456789.")
	return strings.TrimSpace(strings.TrimSuffix(amount, unit) + " " + strings.TrimSpace(unit))
}

func runAgentRun(ctx context.Context, o *agentRunOptions) error {
	if o.prompt == "" {
		o.interactive = true
	}
	if o.interactive {
		if err := o.checkScreen(); err != nil {
			return err
		}
	}
	run, err := o.prepare(ctx)
	if err != nil {
		return err
	}
	if o.detach {
		return o.detached(run)
	}
	return o.watch(ctx, run)
}

// prepare makes what the run needs, and starts it. An interrupt ends it.
func (o *agentRunOptions) prepare(ctx context.Context) (run engine.Run, err error) {
	ctx, stop := interruptible(ctx)
	defer stop()
	defer func() { err = interrupted(ctx, err) }()
	if err := o.check(ctx); err != nil {
		return run, err
	}
	if err := o.chooseMachines(ctx); err != nil {
		return run, err
	}
	name, err := o.place(ctx)
	if err != nil {
		return run, err
	}
	return o.begin(ctx, name, o.prompt)
}

// begin starts a run in the sandbox of that name.
func (o *agentRunOptions) begin(ctx context.Context, name, prompt string) (engine.Run, error) {
	task := o.task
	task.Dir, task.Name, task.Client, task.Prompt, task.Env = o.dir, name, o.client, prompt, o.env.values
	if o.interactive {
		size := o.console.screenSize()
		task.Screen = &size
	}
	run, notes, err := o.e.StartAgent(ctx, task)
	o.console.notes(notes)
	return run, err
}

func (o *agentRunOptions) detached(run engine.Run) error {
	if o.json {
		return o.console.jsonLine(startedDocument{"started", run})
	}
	return o.console.table([][]string{
		{"working", run.Sandbox, run.Title},
		{"look", "litterbox agent logs " + run.Sandbox + " --follow"},
		{"attach", "litterbox agent attach " + run.Sandbox},
	})
}

// watch shows a run until it ends, or until the user goes.
func (o *agentRunOptions) watch(ctx context.Context, run engine.Run) error {
	var ended bool
	var err error
	if run.Screen {
		ended, err = o.console.attachScreen(ctx, o.e, run)
	} else {
		run, ended, err = o.follow(ctx, run, "")
	}
	if err != nil {
		return err
	}
	if !ended {
		o.console.note("%s keeps working in %s; to come back: litterbox agent attach %s", run.Title, run.Sandbox, run.Sandbox)
		return nil
	}
	if run, err = o.e.AwaitAgent(ctx, run); err != nil {
		return err
	}
	if err := o.concluded(ctx, run); err != nil {
		return err
	}
	return statusError(run.ExitCode)
}

// checkScreen reports whether there is a terminal for a full-screen interface.
func (o *agentRunOptions) checkScreen() error {
	err := o.console.checkScreen(o.detach)
	if err == nil {
		return nil
	}
	if o.task.Resume {
		return err.WithHint("litterbox agent resume %s 'And now …'", o.in)
	}
	return err.WithHint("litterbox agent run %s 'Fix the flaky login test'", o.client)
}

// checkScreen is nil where there is a terminal for a full-screen interface.
func (c *console) checkScreen(detached bool) *fault.Error {
	_, in := terminal(c.stdin)
	_, out := terminal(c.stdout)
	if in && out || detached {
		return nil
	}
	return fault.New(fault.Invalid, "cannot show a full-screen interface: standard input and output are not a terminal")
}
