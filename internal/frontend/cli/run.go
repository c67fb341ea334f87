package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

type runOptions struct {
	execOptions
	exists func(ctx context.Context, dir, name string) (bool, error)
	create func(context.Context, engine.CreateRequest) (engine.Creation, error)
	delete func(context.Context, engine.DeleteRequest) (engine.DeleteResult, error)

	remove bool
}

func newRun(s *session) *cobra.Command {
	o := &runOptions{execOptions: execOptions{console: s.console, kind: "exec"}}
	cmd := &cobra.Command{
		Use:   "run NAME [flags] -- CMD...",
		Short: "Create the sandbox if missing, run a command, commit",
		Long: `Run one command in a sandbox, which is made first if it does not exist. With --rm
the sandbox is deleted afterwards, unmerged work included; its last commit stays in
the trash, and the output says where. It is not deleted if other commands are
running in it by then.`,
		Example: `  litterbox run fix-login -- make test
  litterbox run try -m 'Upgrade everything' --rm -- sh -c 'go get -u ./... && go test ./...'`,
		Args:              wantArgs(1, -1),
		Annotations:       passThrough(),
		ValidArgsFunction: s.sandboxNames(false, ""),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, argv, err := commandAfterName(cmd, args)
			if err != nil || argv == nil {
				return err
			}
			if len(argv) == 0 {
				return usageError(cmd, "no command after %q", name)
			}
			if err := o.check(cmd); err != nil {
				return err
			}
			o.name, o.argv = name, argv
			return s.command(cmd, func(ctx context.Context, e useCases, dir string) error {
				o.exists, o.create, o.exec, o.delete, o.dir = e.Exists, e.Create, e.Exec, e.Delete, dir
				o.standIn(e, dir)
				return runRun(ctx, o)
			})
		},
	}
	cmd.Flags().SetInterspersed(false)
	o.addFlags(cmd)
	s.driverFlag(cmd, &o.driver, chosenDriver)
	cmd.Flags().BoolVar(&o.remove, "rm", false, "delete the sandbox afterwards; its last commit stays in the trash")
	return cmd
}

func runRun(ctx context.Context, o *runOptions) error {
	if err := o.console.checkAsk(o.ask); err != nil {
		return err // before anything is made
	}
	if err := o.createMissing(ctx); err != nil {
		return err
	}
	err := runExec(ctx, &o.execOptions)
	if !o.remove {
		return err
	}
	// Also after an interrupt: --rm was requested before.
	deleted, deleteErr := o.delete(context.WithoutCancel(ctx), engine.DeleteRequest{Dir: o.dir, Name: o.name, Force: true, Left: true})
	if deleteErr == nil {
		o.console.note("deleted %s; its last commit %s stays at %s", deleted.Name, short(deleted.Tip), deleted.Trash)
		return err
	}
	if status := exitStatus(0); err == nil || errors.As(err, &status) {
		return deleteErr // a sandbox left behind matters more than the exit code of the command
	}
	return errors.Join(err, deleteErr)
}

func (o *runOptions) createMissing(ctx context.Context) (err error) {
	ctx, stop := interruptible(ctx)
	defer stop()
	defer func() { err = interrupted(ctx, err) }()
	if exists, err := o.exists(ctx, o.dir, o.name); err != nil || exists {
		return err
	}
	output := &lines{console: o.console}
	made, err := o.create(ctx, engine.CreateRequest{Dir: o.dir, Name: o.name, AllowDegraded: o.allowDegraded, Driver: o.driver,
		Review: o.console.review, Output: output})
	if err = errors.Join(err, output.flush()); err != nil {
		if fault.KindOf(err) == fault.AlreadyExists {
			// Another run with the same name may have been faster; but the
			// name may also be taken by a branch, which is an error.
			if exists, listErr := o.exists(ctx, o.dir, o.name); listErr == nil && exists {
				return nil
			}
		}
		return err
	}
	o.console.notes(made.Notes)
	return nil
}
