package cli

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

type demoOptions struct {
	console *console
	// litterbox runs one command line of this program and captures what it
	// prints. The demo shows exactly what a user would type and see.
	litterbox func(ctx context.Context, args ...string) (output string, code int)
	delete    func(context.Context, engine.DeleteRequest) (engine.DeleteResult, error)

	allowDegraded bool
}

func newDemo(s *session) *cobra.Command {
	o := &demoOptions{console: s.console}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "See litterbox work on a throwaway repository",
		Long: `Make a throwaway repository, let two sandboxes work on it side by side, show what
they cannot reach, merge one, discard the other, and clean up.`,
		Example:           "  litterbox demo",
		Args:              wantArgs(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: s.action(func(ctx context.Context, e useCases, _ string, _ []string) error {
			o.litterbox = s.captured
			o.delete = e.Delete
			return runDemo(ctx, o)
		}),
	}
	allowDegradedFlag(cmd, &o.allowDegraded)
	return cmd
}

// captured runs args as a command line of their own, with an empty stdin and
// without a terminal.
func (s *session) captured(ctx context.Context, args ...string) (string, int) {
	var out synchronized
	c := newConsole(strings.NewReader(""), &out, &out, s.console.env)
	c.now = s.console.now
	code := run(ctx, c, s.version, s.engine, args)
	return out.buffer.String(), code
}

// synchronized is a buffer that stdout and stderr of a command share.
type synchronized struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (s *synchronized) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buffer.Write(p)
}

// demo is one showing, in a repository of its own.
type demo struct {
	*demoOptions
	repository string
	reached    []string // what a sandbox could do but should not
}

const greeting = `#!/bin/sh
echo "Hello, world!"
`

func runDemo(ctx context.Context, o *demoOptions) (err error) {
	base, err := os.MkdirTemp("", "litterbox-demo-")
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot make a directory for the demo")
	}
	d := &demo{demoOptions: o, repository: filepath.Join(base, "project")}
	defer func() {
		d.discard(context.WithoutCancel(ctx), "greet", "tidy")
		err = errors.Join(err, os.RemoveAll(base))
	}()
	if err := d.makeRepository(ctx); err != nil {
		return err
	}
	for _, act := range []func(context.Context) error{d.create, d.work, d.attack, d.review} {
		if err := act(ctx); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	if len(d.reached) > 0 {
		return fault.New(fault.Internal, "cannot vouch for this machine: a sandbox could run %s", strings.Join(d.reached, ", ")).
			WithHint("litterbox doctor")
	}
	return d.console.print("\nThe repository and both sandboxes are gone again. Now yours: litterbox create NAME\n")
}

func (d *demo) makeRepository(ctx context.Context) error {
	if err := os.Mkdir(d.repository, 0o755); err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot make the demo's repository")
	}
	if err := os.WriteFile(filepath.Join(d.repository, "hello.sh"), []byte(greeting), 0o755); err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot write the demo's first file")
	}
	// The user's own hooks, signing key and templates have no part in this.
	for _, args := range [][]string{
		{"init", "--quiet", "--template=", "--initial-branch=main"},
		{"config", "user.name", "litterbox demo"},
		{"config", "user.email", "demo@example.invalid"},
		{"config", "core.hooksPath", "/dev/null"},
		{"config", "commit.gpgSign", "false"},
		{"add", "hello.sh"},
		{"commit", "--quiet", "--message=Say hello"},
	} {
		if out, err := d.git(ctx, args...); err != nil {
			return fault.Wrap(fault.Unavailable, err, "cannot prepare the demo with git %s: %s", args[0], out)
		}
	}
	if err := d.heading("A throwaway repository, and a sandbox for each of two agents"); err != nil {
		return err
	}
	return d.show(ctx, "git", "log", "--oneline")
}

func (d *demo) create(ctx context.Context) error {
	for _, name := range []string{"greet", "tidy"} {
		args := []string{"create", name}
		if d.allowDegraded {
			args = append(args, "--allow-degraded")
		}
		if err := d.litter(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

func (d *demo) work(ctx context.Context) error {
	if err := d.heading("They work at the same time, each on its own copy"); err != nil {
		return err
	}
	greet := []string{"exec", "greet", "-m", "Greet by name", "--", "sh", "-c", `sed -i s/world/Ada/ hello.sh && echo Ada >names && ./hello.sh`}
	tidy := []string{"exec", "tidy", "-m", "Tidy up", "--", "sh", "-c", "rm -v *"}
	var outputs [2]string
	var codes [2]int
	var both sync.WaitGroup
	for i, args := range [][]string{greet, tidy} {
		both.Go(func() { outputs[i], codes[i] = d.litterbox(ctx, d.line(args)...) })
	}
	both.Wait()
	for i, args := range [][]string{greet, tidy} {
		if err := d.typed(outputs[i], "litterbox", args...); err != nil {
			return err
		}
		if codes[i] != 0 {
			return exitStatus(codes[i])
		}
	}
	if err := d.show(ctx, "git", "status", "--short"); err != nil {
		return err
	}
	return d.litter(ctx, "list")
}

// attack tries what a careless or hostile agent might. Each attempt is
// harmless where it succeeds, and the demo then ends with an error.
func (d *demo) attack(ctx context.Context) error {
	if err := d.heading("What they cannot reach: your keys, the system, the network, each other"); err != nil {
		return err
	}
	home, err := os.UserHomeDir()
	if err != nil {
		home = "/root"
	}
	// The demo's own server on this machine: reaching it would be enough, and
	// trying does no harm.
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot start the server of the demo")
	}
	defer server.Close()
	go func() {
		for {
			conn, err := server.Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
	}()
	for _, command := range [][]string{
		{"ls", filepath.Join(home, ".ssh")},
		{"touch", "/etc/litterbox-demo"},
		{"git", "ls-remote", "git://" + server.Addr().String() + "/"}, // this machine's loopback
		{"cat", "names"}, // made by greet a moment ago
	} {
		args := append([]string{"exec", "tidy", "--"}, command...)
		output, code := d.litterbox(ctx, d.line(args)...)
		if err := d.typed(output, "litterbox", args...); err != nil {
			return err
		}
		switch code {
		case 0:
			d.reached = append(d.reached, quoted(command...))
		case exitOwnFailure:
			return exitStatus(code)
		}
	}
	return nil
}

func (d *demo) review(ctx context.Context) error {
	if err := d.heading("You review, keep one, and throw the other away"); err != nil {
		return err
	}
	for _, args := range [][]string{{"diff", "greet", "--", "hello.sh"}, {"merge", "greet"}, {"delete", "--force", "tidy"}} {
		if err := d.litter(ctx, args...); err != nil {
			return err
		}
	}
	return d.show(ctx, "./hello.sh")
}

// discard removes the leftovers of an interrupted demo; after a complete one there
// are none, which is not an error.
func (d *demo) discard(ctx context.Context, names ...string) {
	for _, name := range names {
		_, err := d.delete(ctx, engine.DeleteRequest{Dir: d.repository, Name: name, Force: true})
		if err != nil && fault.KindOf(err) != fault.NotFound {
			d.console.note("%s", err)
		}
	}
}

// litter shows and runs a command line of litterbox.
func (d *demo) litter(ctx context.Context, args ...string) error {
	output, code := d.litterbox(ctx, d.line(args)...)
	if err := d.typed(output, "litterbox", args...); err != nil {
		return err
	}
	return statusError(code)
}

// show shows and runs a program of the host in the demo's repository.
func (d *demo) show(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = d.repository
	output, err := cmd.CombinedOutput()
	if len(output) == 0 {
		output = []byte("(nothing)\n")
	}
	if typedErr := d.typed(string(output), name, args...); typedErr != nil {
		return typedErr
	}
	if err != nil {
		return fault.Wrap(fault.Internal, err, "cannot run %s in the demo", name)
	}
	return nil
}

func (d *demo) git(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = d.repository
	output, err := cmd.CombinedOutput()
	return string(output), err
}

// line is a command line for the repository that works from any directory.
func (d *demo) line(args []string) []string { return append([]string{"-C", d.repository}, args...) }

func (d *demo) heading(text string) error {
	return d.console.print("\n%s\n", d.console.style("1", text))
}

func (d *demo) typed(output, name string, args ...string) error {
	if err := d.console.print("  $ %s\n", d.console.style("36", quoted(append([]string{name}, args...)...))); err != nil {
		return err
	}
	for line := range strings.Lines(output) {
		// The temporary path says nothing and is longer than the line.
		line = strings.ReplaceAll(clean(strings.TrimRight(line, "\n")), d.repository, "~/project")
		if line == "" {
			continue
		}
		if err := d.console.print("    %s\n", line); err != nil {
			return err
		}
	}
	return nil
}

// quoted joins words the way a shell would read them again.
func quoted(words ...string) string {
	out := make([]string, len(words))
	for i, word := range words {
		out[i] = word
		if word == "" || strings.ContainsAny(word, " \t\n'\"$&|;<>()*?[]{}~`\\!#") {
			out[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
	}
	return strings.Join(out, " ")
}
