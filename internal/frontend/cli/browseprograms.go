package cli

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"syscall"

	"github.com/litterbox-sandbox/litterbox/internal/caller"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// page writes through git's pager where stdout is a terminal.
func (o *browseOptions) page(ctx context.Context, write func(io.Writer) error) error {
	pager := "cat"
	if _, tty := terminal(o.console.stdout); tty {
		var err error
		if pager, err = o.program(ctx, o.request.Dir, "GIT_PAGER"); err != nil {
			return err
		}
	}
	o.console.progress.clear()
	if pager == "" || pager == "cat" {
		out := bufio.NewWriter(o.console.stdout)
		err := write(out)
		return errors.Join(err, out.Flush())
	}
	// The pager owns the terminal until it is left.
	owned, stop := leavingToGit(ctx, -1)
	defer stop()
	cmd := exec.CommandContext(owned, "/bin/sh", "-c", pager)
	cmd.Stdout, cmd.Stderr, cmd.Env = o.console.stdout, o.console.stderr, environmentWith(ctx, "LESS=FRX", "LV=-c")
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot start the pager %q", pager)
	}
	err = write(in)
	if errors.Is(err, syscall.EPIPE) { // left before its end
		err = nil
	}
	in.Close()
	return errors.Join(err, ended(owned, cmd, "the pager"))
}

// edit opens copies in git's editor.
func (o *browseOptions) edit(ctx context.Context) error {
	editor, err := o.program(ctx, o.request.Dir, "GIT_EDITOR")
	if err != nil {
		return err
	}
	return o.copy(ctx, o.request, func(root, path string) error {
		o.console.progress.clear()
		owned, stop := leavingToGit(ctx, -1)
		defer stop()
		cmd := exec.CommandContext(owned, "/bin/sh", "-c", editor+` "$@"`, editor, path)
		cmd.Dir, cmd.Env = root, caller.Of(ctx).Env // no settings for editors are there
		cmd.Stdin, cmd.Stdout, cmd.Stderr = o.console.stdin, o.console.stdout, o.console.stderr
		if err := cmd.Start(); err != nil {
			return fault.Wrap(fault.Unavailable, err, "cannot start the editor %q", editor)
		}
		return ended(owned, cmd, "the editor")
	})
}

// environmentWith is the caller's environment, with defaults for unset variables.
func environmentWith(ctx context.Context, defaults ...string) []string {
	env := slices.Clone(caller.Of(ctx).Env)
	for _, one := range defaults {
		name, _, _ := strings.Cut(one, "=")
		if !slices.ContainsFunc(env, func(kv string) bool { return strings.HasPrefix(kv, name+"=") }) {
			env = append(env, one)
		}
	}
	return env
}

// ended waits for a program of the user's. Its exit code is the command's.
func ended(ctx context.Context, cmd *exec.Cmd, what string) error {
	err := cmd.Wait()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fault.Wrap(fault.Canceled, ctx.Err(), "%s was ended", what)
	case errors.As(err, &exit) && exit.ExitCode() > 0:
		return statusError(exit.ExitCode())
	}
	return fault.Wrap(fault.Unavailable, err, "%s did not end normally", what)
}
