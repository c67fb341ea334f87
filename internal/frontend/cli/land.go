package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// landOptions are those of apply and merge, which differ in the fate of the
// sandbox.
type landOptions struct {
	console *console
	merge   func(context.Context, engine.MergeRequest) (engine.MergeResult, error)

	dir, name string
	args      []string // git's
	delete    bool     // merge, not apply
	yes       bool
	runHooks  bool
	stop      bool // merge only
	json      bool
	history   string // what lands; empty for the configured one
	solve     bool   // mergetool
	tool      string
	noPrompt  bool
}

// newLand completes cmd, which brings its own texts.
func newLand(s *session, o *landOptions, cmd *cobra.Command) *cobra.Command {
	cmd.DisableFlagParsing = true
	cmd.ValidArgsFunction = s.sandboxNames(false, "")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		own := map[string]*bool{"--yes": &o.yes, "--run-hooks": &o.runHooks, "--json": &o.json}
		if o.delete {
			own["--stop"] = &o.stop
		}
		if o.solve {
			own["--no-prompt"] = &o.noPrompt
			var err error
			if args, err = valueFlags(cmd, args, map[string]*string{"--tool": &o.tool}); err != nil {
				return err
			}
		}
		args, err := o.squash(cmd, args)
		if err != nil {
			return err
		}
		name, git, help, err := gitArgs(cmd, args, own)
		if help {
			return cmd.Help()
		}
		if err != nil {
			return err
		}
		o.name, o.args = name, git
		return s.command(cmd, func(ctx context.Context, e useCases, dir string) error {
			o.merge, o.dir = e.Merge, dir
			return runLand(ctx, o)
		})
	}
	// Only for the help page: gitArgs reads them.
	if o.solve {
		cmd.Flags().StringVar(&o.tool, "tool", "", "resolve conflicts with `TOOL` instead of git's merge.tool")
		cmd.Flags().BoolVar(&o.noPrompt, "no-prompt", false, "do not ask before each file")
	}
	cmd.Flags().BoolVar(&o.yes, "yes", false, "merge files that could run code on this machine without asking")
	cmd.Flags().BoolVar(&o.runHooks, "run-hooks", false, "let git run hooks that this very merge changes")
	if o.delete {
		cmd.Flags().BoolVar(&o.stop, "stop", false, "end what is at work in the sandbox, and merge what it did too")
	}
	cmd.Flags().StringVar(&o.history, "squash", "", "=milestone or =all: land one commit instead of the steps since the last\nmilestone, or of all; without a value it is git's")
	cmd.Flags().BoolVar(&o.json, "json", false, "print the result as one JSON object, git's output on stderr")
	return cmd
}

// squash takes --squash=milestone and --squash=all out of the arguments; a bare
// --squash is git's.
func (o *landOptions) squash(cmd *cobra.Command, args []string) (rest []string, err error) {
	for n, arg := range args {
		value, ours := strings.CutPrefix(arg, "--squash=")
		switch {
		case arg == "--":
			return append(rest, args[n:]...), nil
		case !ours:
			rest = append(rest, arg)
		case value == "milestone" || value == "milestones":
			o.history = engine.HistoryMilestones
		case value == "all" || value == "one":
			o.history = engine.HistoryOne
		default:
			return nil, usageError(cmd, "--squash is milestone or all, not %q", value)
		}
	}
	return rest, nil
}

func runLand(ctx context.Context, o *landOptions) error {
	patience := 1
	if o.solve {
		patience = -1 // the tool owns the terminal until it is left
	}
	ctx, stop := leavingToGit(ctx, patience)
	defer stop()
	r := engine.MergeRequest{
		Dir: o.dir, Name: o.name, Args: o.args, Yes: o.yes, RunHooks: o.runHooks, Delete: o.delete, Stop: o.stop,
		// The files themselves and no wrapper: git must see the terminal.
		Stdin: o.console.stdin, Stdout: o.console.stdout, Stderr: o.console.stderr,
	}
	r.History, r.Introduce, r.Solve = o.history, o.console.canAsk(), o.toolArgs()
	if o.json {
		r.Stdout = o.console.stderr
	}
	if o.console.canAsk() {
		r.ConfirmStop = func(work []engine.Work) (bool, error) {
			return o.console.askToEnd(ctx, o.name, work, "End it, and merge what it did too?")
		}
		r.Confirm = func(risky []engine.Risk) (bool, error) { return o.confirm(ctx, risky) }
	}
	result, err := o.merge(ctx, r)
	document := landDocument{o.name, result.ExitCode, result.Landed, result.Deleted, list(result.Risks), list(result.Notes), list(result.Running), list(result.Ended)}
	if err != nil {
		if o.json && fault.KindOf(err) == fault.Denied && len(result.Risks) > 0 {
			err = errors.Join(err, o.console.document(document)) // what a confirmation would be about
		}
		return err
	}
	o.console.noteWork("was at work when its state was taken, and goes on", result.Running)
	o.console.noteWork("ended", result.Ended)
	o.console.notes(result.Notes)
	if o.json {
		if err := o.console.document(document); err != nil {
			return err
		}
	} else if result.Deleted {
		if err := o.console.print("merged %s and deleted the sandbox\n", clean(o.name)); err != nil {
			return err
		}
	}
	return statusError(result.ExitCode)
}

// landDocument is what apply --json and merge --json print.
type landDocument struct {
	Name     string        `json:"name"`
	ExitCode int           `json:"exit_code"` // git's
	Landed   bool          `json:"landed"`
	Deleted  bool          `json:"deleted"`
	Risks    []engine.Risk `json:"risks"` // files that can run code on this machine
	Notes    []string      `json:"notes"`
	Running  []engine.Work `json:"running"` // at work when the state was taken
	Ended    []engine.Work `json:"ended"`
}

func (o *landOptions) confirm(ctx context.Context, risky []engine.Risk) (bool, error) {
	o.console.progress.clear()
	fmt.Fprintf(o.console.stderr, "%s changes files that could run code on this machine:\n", clean(o.name))
	for _, line := range riskLines(risky) {
		fmt.Fprintln(o.console.stderr, line)
	}
	return o.console.ask(ctx, "Merge them?")
}
