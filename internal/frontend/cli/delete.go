package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
)

type deleteOptions struct {
	console *console
	delete  func(context.Context, engine.DeleteRequest) (engine.DeleteResult, error)
	list    listing
	count   func(context.Context, engine.Info) (int, error) // of commits that are not merged

	dir    string
	chosen selection
	agreed map[string]int // commits of each that may go, as agreed for several
	// besides are goldens that go with the sandboxes.
	besides []string
	yes     bool
	force   bool
	stop    bool
	purge   bool
	json    bool
}

func newDelete(s *session) *cobra.Command {
	o := &deleteOptions{console: s.console}
	cmd := &cobra.Command{
		Use:   "delete NAME... | --all",
		Short: "Delete sandboxes and their branches",
		Long: `Delete sandboxes and their branches. The last commit of each stays in the trash
of the repository; litterbox trash restore brings it back. Of a sandbox with work
that is not merged, its files, its home and its log stay there too for a while
(see litterbox trash), unless --purge is given. Work that is not merged needs
confirmation or --force. Work that is in no commit needs --force: files that git
cannot hold, repositories inside the repository, other branches and the stash of
the git inside; merge keeps a sandbox that has any of these.

A busy sandbox is not deleted: one with a running command, a shell, an agent's
session, or a process that a command left running. With --stop, or with your
answer on a terminal, they get ten seconds to end, and their changes are committed
first; --force does that too. Services are ended by their stop signals.

NAME may be a pattern, quoted: '*' stands for any characters, and 'worker-*' for
the workers that litterbox spawn made. With a pattern and with --all you are asked
once, and shown what is not merged; --yes answers that question.`,
		Example: `  litterbox delete fix-login
  litterbox delete --force try-1 try-2
  litterbox delete 'try-*' --yes`,
		Args:              wantSelection(&o.chosen),
		ValidArgsFunction: s.sandboxNames(true, ""),
		RunE: s.action(func(ctx context.Context, e useCases, dir string, args []string) error {
			o.delete, o.list, o.count, o.dir, o.chosen.names = e.Delete, e.List, e.Unmerged, dir, args
			return runDelete(ctx, o)
		}),
	}
	allFlag(cmd, &o.chosen)
	o.addFlags(cmd)
	return cmd
}

// addFlags adds the flags that delete and teardown share.
func (o *deleteOptions) addFlags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.yes, "yes", false, "also delete what is not merged, without asking; it stays in the trash")
	cmd.Flags().BoolVar(&o.force, "force", false, "also delete what is not merged or in no commit; implies --stop")
	cmd.Flags().BoolVar(&o.stop, "stop", false, "end what is at work in the sandbox")
	cmd.Flags().BoolVar(&o.purge, "purge", false, "keep nothing in the trash, not even the last commit")
	cmd.Flags().BoolVar(&o.json, "json", false, "print a JSON array")
}

func runDelete(ctx context.Context, o *deleteOptions) error {
	names := o.chosen.names
	if o.chosen.wildcard() {
		infos, err := o.chosen.pick(ctx, o.list, o.dir)
		if err != nil {
			return err
		}
		return o.deleteAll(ctx, infos)
	}
	return o.deleteEach(ctx, names)
}

// deleteEach deletes them one after the other.
func (o *deleteOptions) deleteEach(ctx context.Context, names []string) error {
	deleted := []engine.DeleteResult{}
	var problems []error
	for _, name := range names {
		r := engine.DeleteRequest{Dir: o.dir, Name: name, Force: o.force, Stop: o.stop || o.force, Purge: o.purge}
		if o.console.canAsk() {
			r.ConfirmStop = func(work []engine.Work) (bool, error) {
				return o.console.askToEnd(ctx, name, work, "End it and delete the sandbox?")
			}
			r.Confirm = func(unmerged int) (bool, error) {
				if agreed, asked := o.agreed[name]; asked && unmerged <= agreed {
					return true, nil
				}
				return o.console.ask(ctx, fmt.Sprintf("%s has %s. Delete it?", name, count(unmerged, "unmerged commit")))
			}
		}
		if o.yes {
			r.Confirm = func(int) (bool, error) { return true, nil }
		}
		result, err := o.delete(ctx, r)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		result.Ended = list(result.Ended)
		deleted = append(deleted, result)
		o.console.noteWork("ended", result.Ended)
		if o.json {
			continue
		}
		if result.Trash == "" { // a half-made sandbox, which had no commits
			if err := o.console.print("deleted %s\n", clean(result.Name)); err != nil {
				return err
			}
			continue
		}
		kept := ""
		if result.Until != nil {
			kept = "; its files stay until " + result.Until.Local().Format("2 Jan 2006 15:04")
		}
		if err := o.console.print("deleted %s (was %s)%s\n  bring it back: litterbox trash restore %s\n",
			clean(result.Name), short(result.Tip), kept, clean(result.Name)); err != nil {
			return err
		}
	}
	if o.json {
		problems = append(problems, o.console.document(deleted))
	}
	return errors.Join(problems...)
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
