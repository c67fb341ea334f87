package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

type cpOptions struct {
	console *console
	copy    func(context.Context, engine.CopyRequest) (*sandbox.Iteration, []string, error)

	request engine.CopyRequest
}

func newCp(s *session) *cobra.Command {
	o := &cpOptions{console: s.console}
	cmd := &cobra.Command{
		Use:   "cp NAME:SRC DST | SRC NAME:DST",
		Short: "Copy files into a sandbox or out of it",
		Long: `Copy a file or directory between the host and a sandbox; exactly one side names
a sandbox. Both paths are relative to the current directory. What goes
in is committed. A host path with a colon is written as
./a:b.`,
		Example: `  litterbox cp fix-login:coverage.html .
  litterbox cp testdata/big.json fix-login:testdata/ -m 'Add a large case'`,
		Args:              wantArgs(2, 2),
		ValidArgsFunction: s.copyArguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			message := o.request.Message
			request, ok := copyRequest(args[0], args[1])
			if !ok {
				return usageError(cmd, "exactly one of %q and %q must be NAME:PATH", args[0], args[1])
			}
			return s.action(func(ctx context.Context, e useCases, dir string, _ []string) error {
				request.Dir, request.Message, request.Outside = dir, message, hostPath(dir, request.Outside)
				request.Inside = inHere(e.Within(dir), request.Inside)
				o.copy, o.request = e.Copy, request
				return runCp(ctx, o)
			})(cmd, args)
		},
	}
	cmd.Flags().StringVarP(&o.request.Message, "message", "m", "", "`MESSAGE`: first line of the commit (default: made from the paths)")
	return cmd
}

// copyRequest tells which side is inside.
func copyRequest(from, to string) (engine.CopyRequest, bool) {
	fromName, fromPath, fromInside := insidePath(from)
	toName, toPath, toInside := insidePath(to)
	switch {
	case fromInside == toInside:
		return engine.CopyRequest{}, false
	case fromInside:
		return engine.CopyRequest{Name: fromName, Inside: fromPath, Outside: to, ToHost: true}, true
	}
	return engine.CopyRequest{Name: toName, Inside: toPath, Outside: from}, true
}

// insidePath splits NAME:PATH. As in scp(1), a slash before the colon makes it
// a path of the host.
func insidePath(arg string) (name, path string, ok bool) {
	name, path, ok = strings.Cut(arg, ":")
	if !ok || name == "" || strings.Contains(name, "/") {
		return "", "", false
	}
	if path == "" {
		path = "." // the project itself
	}
	return name, path, true
}

// copyArguments completes both sides: names with a colon and paths behind it,
// or host files.
func (s *session) copyArguments(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 1 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	if name, _, inside := insidePath(toComplete); inside {
		return s.complete(func(ctx context.Context, e useCases, dir string, _ []string, toComplete string) ([]string, error) {
			found, err := pathsInside(ctx, e, dir, name, strings.TrimPrefix(toComplete, name+":"))
			for i := range found {
				found[i] = name + ":" + found[i]
			}
			return found, err
		})(cmd, args, toComplete)
	}
	if strings.Contains(toComplete, "/") {
		return nil, cobra.ShellCompDirectiveDefault
	}
	found, directive := s.sandboxNames(true, ":")(cmd, nil, toComplete)
	if len(found) == 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	return found, directive
}

func runCp(ctx context.Context, o *cpOptions) error {
	it, notes, err := o.copy(ctx, o.request)
	if err != nil {
		return err
	}
	o.console.notes(notes)
	return o.console.committed(o.request.Name, it)
}
