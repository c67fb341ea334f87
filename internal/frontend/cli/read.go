package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"
)

type readOptions struct {
	console *console
	read    func(ctx context.Context, dir, name, path string, w io.Writer) error

	dir, name, path string
}

func newRead(s *session) *cobra.Command {
	o := &readOptions{console: s.console}
	return &cobra.Command{
		Use:               "read NAME PATH",
		Short:             "Print a file of a sandbox",
		Long:              "Print a file of a sandbox as it is now. PATH is relative to\nthe current directory of the project.",
		Example:           "  litterbox read fix-login src/login.go",
		Args:              wantArgs(2, 2),
		ValidArgsFunction: s.thenComplete(completePath),
		RunE: s.action(func(ctx context.Context, e useCases, dir string, args []string) error {
			o.read, o.dir, o.name, o.path = e.Read, dir, args[0], inHere(e.Within(dir), args[1])
			return runRead(ctx, o)
		}),
	}
}

func runRead(ctx context.Context, o *readOptions) error {
	return o.read(ctx, o.dir, o.name, o.path, clearing{o.console.progress, o.console.stdout})
}
