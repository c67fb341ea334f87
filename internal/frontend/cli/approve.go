package cli

import (
	"cmp"
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

type approveOptions struct {
	console    *console
	signatures func(ctx context.Context, dir, name string) ([]engine.Signature, error)
	approve    func(context.Context, engine.ApproveRequest) error

	request engine.ApproveRequest
	json    bool
}

func newApprove(s *session) *cobra.Command {
	o := &approveOptions{console: s.console}
	cmd := &cobra.Command{
		Use:   "approve NAME [NUMBER]",
		Short: "Let your ssh-agent sign what a program inside asks for",
		Long: `List the ssh-agent signatures that programs in a sandbox wait for, or approve one
by its number. A signature that is not approved within two minutes is refused. The
host shown for a login is the one whose key signed the session, whatever name the
program gave. NAME may also be a live environment's, as litterbox env list has it.`,
		Example: `  litterbox approve fix-login
  litterbox approve fix-login 1
  litterbox approve fix-login 2 --refuse`,
		Args:              wantArgs(1, 2),
		ValidArgsFunction: s.thenComplete(completeSignature),
		RunE: s.action(func(ctx context.Context, e useCases, dir string, args []string) error {
			o.signatures, o.approve, o.request.Dir, o.request.Name = e.Signatures, e.Approve, dir, args[0]
			if len(args) == 1 {
				return listSignatures(ctx, o)
			}
			id, err := strconv.Atoi(args[1])
			if err != nil {
				return fault.New(fault.Invalid, "cannot approve %q: it is not the number of a signature", args[1]).WithHint("litterbox approve %s", args[0])
			}
			o.request.ID = id
			return answerSignature(ctx, o)
		}),
	}
	cmd.Flags().BoolVar(&o.request.Refuse, "refuse", false, "refuse it instead")
	cmd.Flags().BoolVar(&o.json, "json", false, "print the list as a JSON array")
	return cmd
}

// answerSignature says what was approved: the numbers tell little.
func answerSignature(ctx context.Context, o *approveOptions) error {
	waiting, err := o.signatures(ctx, o.request.Dir, o.request.Name)
	if err != nil {
		return err
	}
	if err := o.approve(ctx, o.request); err != nil || o.json {
		return err
	}
	verb := "approved"
	if o.request.Refuse {
		verb = "refused"
	}
	for _, w := range waiting {
		if w.ID == o.request.ID {
			return o.console.print("%s %d: %s, with %s\n", verb, w.ID, clean(w.Purpose), clean(cmp.Or(w.Comment, w.Key)))
		}
	}
	return o.console.print("%s %d\n", verb, o.request.ID)
}

// completeSignature gives the numbers of the signatures that wait.
func completeSignature(ctx context.Context, e useCases, dir string, args []string, _ string) ([]string, error) {
	if len(args) > 1 {
		return nil, nil
	}
	waiting, err := e.Signatures(ctx, dir, args[0])
	var numbers []string
	for _, w := range waiting {
		numbers = append(numbers, decimal(w.ID)+"\t"+clean(w.Purpose))
	}
	return numbers, err
}

func listSignatures(ctx context.Context, o *approveOptions) error {
	waiting, err := o.signatures(ctx, o.request.Dir, o.request.Name)
	if err != nil {
		return err
	}
	if o.json {
		return o.console.document(list(waiting))
	}
	if len(waiting) == 0 {
		o.console.note("no signature waits in %s", o.request.Name)
		return nil
	}
	rows := [][]string{{"NUMBER", "SINCE", "KEY", "WHAT FOR"}}
	for _, w := range waiting {
		rows = append(rows, []string{decimal(w.ID), ago(o.console.now(), w.Since), w.Comment, w.Purpose})
	}
	return o.console.table(rows)
}
