package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
)

type createOptions struct {
	console *console
	create  func(context.Context, engine.CreateRequest) (engine.Creation, error)

	dir, name, base string
	dirty, pull     bool
	driver          string
	allowDegraded   bool
	noWait          bool
	golden          string
	noGolden        bool
	json            bool

	await awaiting
}

func newCreate(s *session) *cobra.Command {
	o := &createOptions{console: s.console}
	cmd := &cobra.Command{
		Use:   "create NAME [--base REF | --dirty]",
		Short: "Make a sandbox on a branch of its own",
		Long: `Make a sandbox: a branch from HEAD, or from --base, and an isolated copy of its
files. NAME becomes lower case, with dashes in place of anything but letters and
digits. An existing sandbox or branch is never replaced. Uncommitted changes in
your checkout stay out, unless --dirty commits those to tracked files first.

What .litterbox.toml asks for and does not get before litterbox trust (network,
host directories, weaker isolation) is named before anything runs; on a terminal
you may look at the file and trust it. If it asks for an image that it does not get,
no sandbox is made. The output of container.setup-command is shown while it runs; a
golden (litterbox build) has already run it. create waits for services that have a
readiness check; when one fails, the end of its log is shown, the exit code is 8,
and the sandbox stays.`,
		Example: `  litterbox create fix-login
  litterbox create try-v2 --base v2.0.0`,
		Args:              wantArgs(1, 1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: s.action(func(ctx context.Context, e useCases, dir string, args []string) error {
			o.create, o.await, o.dir, o.name = e.Create, e.AwaitServices, dir, args[0]
			return runCreate(ctx, o)
		}),
	}
	cmd.Flags().StringVar(&o.base, "base", "", "start from `REF` instead of HEAD")
	_ = cmd.RegisterFlagCompletionFunc("base", s.complete(completeRef)) // fails for a flag that is not there
	cmd.Flags().BoolVar(&o.dirty, "dirty", false, "bring the uncommitted changes to tracked files as the first commit")
	cmd.Flags().BoolVar(&o.pull, "pull", false, "ask the registry again what container.base-image stands for")
	cmd.Flags().StringVar(&o.golden, "golden", "", "begin with the golden `NAME` instead of the one called default")
	_ = cmd.RegisterFlagCompletionFunc("golden", s.goldenFlag()) // the flag exists
	cmd.Flags().BoolVar(&o.noGolden, "no-golden", false, "begin without a golden, and run container.setup-command")
	exclusive(cmd, "golden", "no-golden")
	cmd.Flags().BoolVar(&o.noWait, "no-wait", false, "do not wait for services to be ready")
	cmd.Flags().BoolVar(&o.json, "json", false, "print the sandbox as one JSON object")
	s.driverFlag(cmd, &o.driver, chosenDriver)
	allowDegradedFlag(cmd, &o.allowDegraded)
	return cmd
}

func allowDegradedFlag(cmd *cobra.Command, value *bool) {
	cmd.Flags().BoolVar(value, "allow-degraded", false, "accept less isolation than this version is made for (see litterbox doctor)")
}

func runCreate(ctx context.Context, o *createOptions) error {
	output := &lines{console: o.console}
	made, err := o.create(ctx, engine.CreateRequest{Dir: o.dir, Name: o.name, Base: o.base, Dirty: o.dirty, Pull: o.pull, AllowDegraded: o.allowDegraded, Driver: o.driver,
		Golden: o.golden, NoGolden: o.noGolden, Review: o.console.review, Output: output})
	if err = errors.Join(err, output.flush()); err != nil {
		return err
	}
	if o.json {
		made.Limits = list(made.Limits)
		if err := o.console.document(made.Info); err != nil {
			return err
		}
	} else if err := o.console.print("created %s on branch %s at %s%s\n", clean(made.Name), clean(made.Branch), short(made.Head), onMachine(made.Info)); err != nil {
		return err
	}
	o.console.notes(made.Notes)
	if made.Network == "none" {
		o.console.noteNoNetwork(made.Name)
	}
	if o.noWait {
		return nil
	}
	return o.console.awaitServices(ctx, o.await, o.dir, made.Name)
}
