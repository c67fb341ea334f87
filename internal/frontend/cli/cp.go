package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
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
		Use:   "cp NAME:SRC DST | SRC... NAME:DST | NAME:SRC OTHER:DST",
		Short: "Copy files into a sandbox, out of it or between two",
		Long: `Copy files or directories between the host and a sandbox, or between two
sandboxes. Paths are relative to the current directory. Files copied in are
committed. Write a host path with a colon as ./a:b.

The last part of NAME:SRC may be a quoted pattern for names in that directory; the
whole directory is read for it. With a pattern or several SRC, DST is a directory.
With - as DST the files are written to standard output as a tar archive; with - as
SRC such an archive is unpacked in the directory NAME:DST.`,
		Example: `  litterbox cp fix-login:coverage.html .
  litterbox cp testdata/big.json fix-login:testdata/ -m 'Add a large case'
  litterbox cp 'fix-login:logs/*.txt' logs
  litterbox cp fix-login:src other:src
  litterbox cp fix-login:build - | tar -tv`,
		Args:              wantArgs(2, 1000),
		ValidArgsFunction: s.copyArguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			message, to := o.request.Message, args[len(args)-1]
			var requests []engine.CopyRequest
			for _, from := range args[:len(args)-1] {
				request, ok := copyRequest(from, to)
				switch {
				case !ok:
					return usageError(cmd, "either %q or %q must be NAME:PATH", from, to)
				case len(args) > 2 && (from == "-" || to == "-"):
					return usageError(cmd, "- is for one SRC")
				case len(args) > 2 && !request.ToHost && !strings.HasSuffix(request.Inside, "/"):
					request.Inside += "/"
				}
				requests = append(requests, request)
			}
			return s.action(func(ctx context.Context, e useCases, dir string, _ []string) error {
				for _, request := range requests {
					request.Dir, request.Message, request.Inside = dir, message, inHere(e.Within(dir), request.Inside)
					if err := o.streams(&request); err != nil {
						return err
					}
					if request.From != "" {
						request.Outside = inHere(e.Within(dir), request.Outside)
					} else {
						request.Outside = hostPath(dir, request.Outside)
					}
					if err := into(&request, len(requests) > 1); err != nil {
						return err
					}
					o.copy, o.request = e.Copy, request
					if err := runCp(ctx, o); err != nil {
						return err
					}
				}
				return nil
			})(cmd, args)
		},
	}
	messageFlag(cmd.Flags(), &o.request.Message, "`MESSAGE`: first line of the commit (default: made from the paths)")
	return cmd
}

// streams puts standard input or output in the place of a host path that is "-".
func (o *cpOptions) streams(request *engine.CopyRequest) error {
	switch {
	case request.Outside != "-" || request.From != "":
	case !request.ToHost:
		request.Stdin = o.console.stdin
	default:
		if out, ok := o.console.stdout.(*os.File); ok && term.IsTerminal(int(out.Fd())) {
			return fault.New(fault.Invalid, "cannot write an archive to a terminal").WithHint("litterbox cp %s:%s - | tar -tv", request.Name, request.Inside)
		}
		request.Stdout = o.console.stdout
	}
	return nil
}

// into makes one of several copies go into the directory that is named.
func into(request *engine.CopyRequest, several bool) error {
	if !several || request.From != "" {
		return nil
	}
	info, err := os.Stat(request.Outside)
	switch {
	case request.ToHost && (err != nil || !info.IsDir()):
		return fault.New(fault.Invalid, "cannot copy several files to %q: it is not a directory", request.Outside).WithHint("mkdir %s", request.Outside)
	case !request.ToHost && err == nil && info.IsDir():
		request.Inside += filepath.Base(request.Outside)
	}
	return nil
}

// copyRequest tells which side is inside.
func copyRequest(from, to string) (engine.CopyRequest, bool) {
	fromName, fromPath, fromInside := insidePath(from)
	toName, toPath, toInside := insidePath(to)
	switch {
	case fromInside && toInside:
		return engine.CopyRequest{Name: toName, Inside: toPath, From: fromName, Outside: fromPath}, true
	case !fromInside && !toInside:
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
