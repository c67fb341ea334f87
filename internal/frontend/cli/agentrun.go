package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// agentRunOptions are those of agent run, resume, attach and logs.
type agentRunOptions struct {
	console *console
	e       useCases
	dir     string

	client, prompt string
	name           string
	in             string
	fresh          bool // --new
	task           engine.AgentTask
	env            environment
	budget         string
	detach         bool
	interactive    bool
	locked         bool
	tasks          string
	parallel       int
	json           bool
}

func newAgentRun(s *session) *cobra.Command {
	o := &agentRunOptions{console: s.console}
	cmd := &cobra.Command{
		Use:   "run CLIENT [PROMPT|-] [flags] [-- ARGS...]",
		Short: "Let an agent work in a sandbox",
		Long: `Run an agent's client (` + strings.Join(engine.AgentClients(), ", ") + `, or one of [agents] in your
configuration) inside a sandbox on a task: with its own tools and without a
question. The sandbox is made when there is none, and named after the task; what
the agent does is committed while it works, and what it says and does is shown
in lines. At the end comes what came of it, and what to type next. The exit code
is the client's own, and never 0 when it says that its task failed.

PROMPT is the task; - reads it from standard input. Without one, or with
--interactive, the client's own full-screen interface is on your terminal:
Ctrl-] and then d leaves it, and litterbox agent attach comes back to it. A run
goes on when the terminal is closed or the connection is lost.

The client is this machine's own, where the sandbox can see it; otherwise npm
installs it once, for all sandboxes. The hosts that it needs are allowed by a
preset of its name, which is shown. --with-packages adds those of the package
managers that the repository's files name; on a terminal a new sandbox asks.

With --tasks each line of a file is a task of its own, in a sandbox of its own.
Arguments after -- are the client's.`,
		Example: `  litterbox agent run claude 'Fix the flaky login test'
  litterbox agent run codex - --name upgrade --time 30m --detach <task.md
  litterbox agent run gemini
  litterbox agent run claude --tasks tasks.txt --parallel 4`,
		Args:              wantArgs(1, -1),
		Annotations:       passThrough(),
		ValidArgsFunction: completeClients,
	}
	f := cmd.Flags()
	f.StringVar(&o.name, "name", "", "`NAME` of the sandbox; made when it is missing (default: from PROMPT)")
	f.StringVar(&o.in, "in", "", "work in the sandbox `NAME`, which exists")
	f.BoolVar(&o.fresh, "new", false, "make a new sandbox in any case")
	f.BoolVarP(&o.interactive, "interactive", "i", false, "the client's own full-screen interface, with PROMPT as its first task")
	f.BoolVarP(&o.detach, "detach", "d", false, "return at once; the agent works on")
	f.StringVar(&o.tasks, "tasks", "", "a task from each line of `FILE`; - is standard input")
	f.IntVar(&o.parallel, "parallel", 1, "with --tasks: how many work at once")
	o.flags(cmd)
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
	f.StringVar(&o.task.Model, "model", "", "the `MODEL`, as the client calls it")
	f.StringVar(&o.budget, "budget", "", "what calls of models may cost in this sandbox, such as `5USD`")
	f.DurationVar(&o.task.Time, "time", 0, "end it after `D`, such as 30m")
	f.BoolVar(&o.task.Packages, "with-packages", false, "allow the package managers that the repository's files name")
	f.BoolVar(&o.locked, "locked", false, "allow no package managers, and do not ask")
	f.BoolVar(&o.task.NoCheckpoints, "no-checkpoints", false, "commit at the end only")
	o.env.addFlags(cmd)
	f.BoolVar(&o.json, "json", false, "print events, each as one line of JSON")
	allowDegradedFlag(cmd, &o.task.AllowDegraded)
}

// completeClients completes the first argument.
func completeClients(_ *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var found []cobra.Completion
	for _, name := range engine.AgentClients() {
		if len(args) == 0 && strings.HasPrefix(name, toComplete) {
			found = append(found, name)
		}
	}
	return found, cobra.ShellCompDirectiveNoFileComp
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
		return usageError(cmd, "no client is named: %s", strings.Join(engine.AgentClients(), ", "))
	case own > 2:
		return usageError(cmd, "%d words where one PROMPT is meant: quote it", own-1)
	}
	o.client = args[0]
	if own == 2 {
		o.prompt = args[1]
	}
	switch {
	case o.fresh && o.in != "", o.name != "" && o.in != "":
		return usageError(cmd, "--in names a sandbox that exists, --name and --new make one")
	case o.task.Time < 0:
		return usageError(cmd, "--time %s lies in the past", o.task.Time)
	case o.locked && o.task.Packages:
		return usageError(cmd, "--locked and --with-packages exclude each other")
	case o.parallel < 1:
		return usageError(cmd, "--parallel %d starts nothing", o.parallel)
	case o.tasks != "" && (o.in != "" || o.name != "" || o.interactive || own == 2 && o.prompt != "-"):
		return usageError(cmd, "--tasks makes a sandbox for each task, named after it")
	case o.json && o.interactive:
		return usageError(cmd, "--json prints events, and a full-screen interface has none")
	}
	if o.prompt == "-" && o.tasks == "" {
		content, err := o.console.readAll("-")
		if err != nil {
			return fault.Wrap(fault.Invalid, err, "cannot read the task")
		}
		if o.prompt = strings.TrimSpace(string(content)); o.prompt == "" {
			return fault.New(fault.Invalid, "cannot run an agent: standard input holds no task")
		}
	}
	o.task.Budget = spaced(o.budget)
	return o.env.read(cmd, o.console)
}

// spaced puts a space before the unit of an amount, which a shell would want
// quoted.
func spaced(amount string) string {
	unit := strings.TrimLeft(amount, "0123456789.")
	return strings.TrimSpace(strings.TrimSuffix(amount, unit) + " " + strings.TrimSpace(unit))
}

func runAgentRun(ctx context.Context, o *agentRunOptions) error {
	if o.prompt == "" {
		o.interactive = true
	}
	if o.interactive {
		if err := o.console.checkScreen(o.detach); err != nil {
			return err
		}
	}
	making, stop := interruptible(ctx)
	name, err := o.place(making)
	if err != nil {
		stop()
		return err
	}
	run, err := o.begin(making, name, o.prompt)
	stop()
	if err != nil {
		return err
	}
	if o.detach {
		return o.detached(run)
	}
	return o.watch(ctx, run)
}

// place gives the name of the sandbox to work in, and makes it when needed.
func (o *agentRunOptions) place(ctx context.Context) (string, error) {
	if o.in != "" {
		exists, err := o.e.Exists(ctx, o.dir, o.in)
		if err == nil && !exists {
			err = fault.New(fault.NotFound, "no sandbox named %q in this repository", o.in).WithHint("litterbox list")
		}
		return o.in, err
	}
	name := o.name
	if name == "" {
		name = engine.NameOf(o.client, o.prompt)
	}
	for number := 2; ; number++ {
		exists, err := o.e.Exists(ctx, o.dir, name)
		if err != nil {
			return "", err
		}
		if exists && !o.fresh {
			return name, nil
		}
		if !exists {
			err := o.make(ctx, name)
			if fault.KindOf(err) != fault.AlreadyExists || !o.fresh {
				return name, err
			}
		}
		if o.name != "" {
			return "", fault.New(fault.AlreadyExists, "sandbox %q exists already", name).WithHint("litterbox agent run %s PROMPT --in %s", o.client, name)
		}
		name = numbered(engine.NameOf(o.client, o.prompt), number)
	}
}

func numbered(name string, number int) string {
	suffix := fmt.Sprintf("-%d", number)
	return name[:min(len(name), sandbox.MaxNameLength-len(suffix))] + suffix
}

func (o *agentRunOptions) make(ctx context.Context, name string) error {
	output := &lines{console: o.console}
	made, err := o.e.Create(ctx, engine.CreateRequest{Dir: o.dir, Name: name, AllowDegraded: o.task.AllowDegraded, Review: o.console.review, Output: output})
	if flushErr := output.flush(); err == nil {
		err = flushErr
	}
	if err != nil {
		return err
	}
	o.console.notes(made.Notes)
	return o.askPackages(ctx)
}

// askPackages asks once, for a new sandbox, whether installs may go through.
func (o *agentRunOptions) askPackages(ctx context.Context) error {
	if o.locked || o.task.Packages || o.json || !o.console.canAsk() {
		return nil
	}
	presets, err := o.e.PackagePresets(ctx, o.dir)
	if err != nil || len(presets) == 0 {
		return err
	}
	o.task.Packages, err = o.console.ask(ctx, "The repository installs packages. Allow "+strings.Join(presets, ", ")+" inside?")
	return err
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
		o.console.note("%s works on in %s; to come back: litterbox agent attach %s", run.Title, run.Sandbox, run.Sandbox)
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

// concluded tells what came of a run.
func (o *agentRunOptions) concluded(ctx context.Context, run engine.Run) error {
	if o.json {
		return o.console.jsonLine(startedDocument{"ended", run})
	}
	if err := o.console.table(runTable(run)); err != nil {
		return err
	}
	o.console.notes(run.Notes)
	refused, err := o.e.Refused(context.WithoutCancel(ctx), engine.Place{Dir: o.dir, Name: run.Sandbox}, run.StartedAt)
	if err != nil {
		return nil // deleted meanwhile: nothing can be opened for it
	}
	o.console.noteRefused(run.Sandbox, engine.Unexpected(run, refused))
	return nil
}

// startedDocument is the first and the last line of --json.
type startedDocument struct {
	Kind string     `json:"kind"`
	Run  engine.Run `json:"run"`
}

// runTable is the end of a run, in rows.
func runTable(run engine.Run) [][]string {
	rows := [][]string{{"outcome", outcomeText(run)}, {"exit code", fmt.Sprint(run.ExitCode)}}
	if !run.EndedAt.IsZero() {
		rows = append(rows, []string{"duration", took(run.EndedAt.Sub(run.StartedAt))})
	}
	rows = append(rows, []string{"commits", fmt.Sprint(run.Commits)}, []string{"files", fmt.Sprint(run.Files)})
	if !run.Screen {
		rows = append(rows, []string{"commands", fmt.Sprint(run.Commands)})
	}
	if run.TokensIn+run.TokensOut+run.TokensRead > 0 {
		rows = append(rows, []string{"tokens", fmt.Sprintf("%d in, %d cached, %d out", run.TokensIn, run.TokensRead, run.TokensOut)})
	}
	if run.CostUSD > 0 {
		rows = append(rows, []string{"cost", fmt.Sprintf("%.4f USD, as the client works it out", run.CostUSD)})
	}
	next := "next"
	add := func(command string) {
		rows = append(rows, []string{next, command})
		next = ""
	}
	if run.Commits > 0 {
		add("litterbox diff " + run.Sandbox)
		add("litterbox merge " + run.Sandbox)
	}
	if run.State != sandbox.RunCompleted {
		add("litterbox agent logs " + run.Sandbox)
	}
	add("litterbox agent resume " + run.Sandbox + " 'And now …'")
	return rows
}

func outcomeText(run engine.Run) string {
	text := strings.ReplaceAll(string(run.State), "_", " ")
	if run.Problem != "" {
		text += ": " + run.Problem
	}
	return text
}

// checkScreen reports whether there is a terminal for a full-screen interface.
func (c *console) checkScreen(detached bool) error {
	_, in := terminal(c.stdin)
	_, out := terminal(c.stdout)
	if in && out || detached {
		return nil
	}
	return fault.New(fault.Invalid, "cannot show a full-screen interface: standard input and output are no terminal").
		WithHint("litterbox agent run CLIENT 'Fix the flaky login test'")
}
