package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

type writeOptions struct {
	console *console
	write   func(context.Context, engine.WriteRequest) (*sandbox.Iteration, []string, error)

	dir, name, path, message string
	append                   bool
}

func newWrite(s *session) *cobra.Command {
	o := &writeOptions{console: s.console}
	cmd := &cobra.Command{
		Use:   "write NAME PATH [--append] [-m MESSAGE] <FILE",
		Short: "Write a file of a sandbox from stdin and commit",
		Long: `Write standard input to a file in a sandbox and commit it. PATH is relative to the
current directory of the project; an existing file keeps its mode. --append adds
standard input to the end of the file.`,
		Example:           "  litterbox write fix-login src/login.go -m 'Take the new parser' <login.go",
		Args:              wantArgs(2, 2),
		ValidArgsFunction: s.thenComplete(completePath),
		RunE: s.action(func(ctx context.Context, e useCases, dir string, args []string) error {
			o.write, o.dir, o.name, o.path = e.Write, dir, args[0], inHere(e.Within(dir), args[1])
			return runWrite(ctx, o)
		}),
	}
	messageFlag(cmd.Flags(), &o.message, "`MESSAGE`: first line of the commit (default: made from PATH)")
	cmd.Flags().BoolVarP(&o.append, "append", "a", false, "add to the end of the file")
	return cmd
}

func runWrite(ctx context.Context, o *writeOptions) error {
	if _, ok := terminal(o.console.stdin); ok {
		o.console.note("reading the new content from the terminal; end it with Ctrl-D")
	}
	it, notes, err := o.write(ctx, engine.WriteRequest{
		Dir: o.dir, Name: o.name, Path: o.path, Message: o.message, Content: o.console.stdin, Append: o.append,
	})
	if err != nil {
		return err
	}
	o.console.notes(notes)
	return o.console.committed(o.name, it)
}
