// Package cli is the command line: it turns arguments into requests to the
// engine and results into text, JSON and exit codes.
//
// It deliberately decides nothing about sandboxes: what a command does is in
// package engine, and this package could be deleted without changing it. No
// name of a driver appears here.
//
// Start reading at [Main]; newRoot lists the commands, and each of them has a
// file of its own: an options struct with exactly what it needs, a constructor
// that fills it from flags, and a run function that knows nothing of flags.
package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/litterbox-sandbox/litterbox/internal/caller"
	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/engine/use"
)

// Program is what the composition root hands to [Main].
type Program struct {
	// Version is set by the linker of a release; empty means the version in the
	// binary's build information.
	Version string
	// Build makes the engine. It is called at most once, and not at all by
	// commands that need none, such as version and help.
	Build func(engine.Progress) (*engine.Engine, error)
	// Serve serves agents; see the command mcp.
	Serve func(context.Context, ServeRequest) error
	// Door serves the sandbox that a host's name means to an OpenSSH client, on
	// standard input and output.
	Door func(ctx context.Context, host string) error
	// Image builds the image of virtual machines.
	Image func(context.Context, ImageRequest) (ImageResult, error)
}

// Main runs the command line args (without the program's name) on the standard
// streams of this process and returns its exit code.
func Main(ctx context.Context, p Program, args []string) int {
	// Caught, so that a closed pipe is an error of the write and commands can
	// still commit; not ignored, because children inherit an ignored signal
	// across execve (signal(7)) and git relies on it to end its pager.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)

	c := newConsole(os.Stdin, os.Stdout, os.Stderr, os.Getenv)
	if isSSHProxy(args) {
		return serveDoor(ctx, p, c, args[1])
	}
	build := func() (useCases, error) {
		e, err := p.Build(c.progress.update)
		if err != nil {
			return nil, err
		}
		e.Note = func(note string) { c.note("%s", note) }
		return e, nil
	}
	return (&session{console: c, version: p.Version, build: build, serve: p.Serve, image: p.Image}).run(ctx, args)
}

// useCases groups what the commands need of the engine; tests put a fake here.
type useCases interface {
	use.Work
	use.Files
	use.Landing
	use.Lives
	use.Copies
	use.Snapshots
	use.Goldens
	use.Services
	use.Serving
	use.Network
	use.Audit
	use.Machine
	use.Machines
	use.Settings
	use.Agents
	use.Environments
	use.Hosts
	use.Editors
}

// session is one invocation of the program, shared by its commands.
type session struct {
	console *console
	version string
	dir     directory // -C
	build   func() (useCases, error)
	built   useCases
	serve   func(context.Context, ServeRequest) error
	image   imageBuilder
}

func run(ctx context.Context, c *console, version string, build func() (useCases, error), args []string) int {
	return (&session{console: c, version: version, build: build}).run(ctx, args)
}

func (s *session) run(ctx context.Context, args []string) int {
	c := s.console
	root := newRoot(s, typed(args))
	if len(args) > 0 && args[0] == cobra.ShellCompRequestCmd {
		plainFlags(root)
	}
	root.SetArgs(append([]string{}, args...)) // nil would mean os.Args to cobra
	root.SetIn(c.stdin)
	root.SetOut(c.stdout)
	root.SetErr(c.stderr)
	cmd, err := root.ExecuteContextC(ctx)
	c.progress.clear()
	return report(c.stderr, err, passesThrough(cmd))
}

// engine builds the engine on first use.
func (s *session) engine() (useCases, error) {
	if s.built == nil {
		e, err := s.build()
		if err != nil {
			return nil, err
		}
		s.built = e
	}
	return s.built, nil
}

// action makes the RunE of a command that works on the engine: where the user
// stands, the engine, and a context that ends at an interrupt.
func (s *session) action(run func(ctx context.Context, e useCases, dir string, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		dir, err := s.dir.absolute()
		if err != nil {
			return err
		}
		e, err := s.engine()
		if err != nil {
			return err
		}
		ctx, stop := interruptible(onOwnBehalf(cmd.Context()))
		defer stop()
		return interrupted(ctx, run(ctx, e, dir, args))
	}
}

// onOwnBehalf is ctx for use cases that work for the user who typed the command,
// who owns this process.
func onOwnBehalf(ctx context.Context) context.Context {
	if ctx == nil { // of a command that was not executed, as in completion
		ctx = context.Background()
	}
	person := caller.ThisProcess()
	person.Human = true
	return caller.For(ctx, person)
}
