package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/term"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/frontend/cli"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// screen is a pseudo-terminal: the user's end, and the one litterbox gets.
type screen struct {
	user, program *os.File
}

func newScreen(t *testing.T) screen {
	t.Helper()
	user, program, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { user.Close(); program.Close() })
	if err := pty.Setsize(program, &pty.Winsize{Rows: 30, Cols: 100}); err != nil {
		t.Fatal(err)
	}
	return screen{user, program}
}

// modes is the state of the terminal, comparable.
func (s screen) modes(t *testing.T) term.State {
	t.Helper()
	state, err := term.GetState(int(s.program.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	return *state
}

func (s screen) session(e *fake) cli.Session {
	return cli.Session{Engine: e, Stdin: s.program, Stdout: s.program, Stderr: s.program, Now: now, Env: map[string]string{"TERM": "xterm-256color"}}
}

func TestTerminalIsRawWhileACommandReadsAndRestoredAfterwards(t *testing.T) {
	s := newScreen(t)
	before := s.modes(t)
	for _, c := range []struct {
		name string
		end  func() (engine.ExecResult, error)
		code int
	}{
		{"it exits", func() (engine.ExecResult, error) { return engine.ExecResult{Exit: wire.Exit{Code: 3}}, nil }, 3},
		{"litterbox fails", func() (engine.ExecResult, error) { return engine.ExecResult{}, errors.New("lost") }, 125},
		{"a panic", func() (engine.ExecResult, error) { panic("defect") }, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := &fake{exec: func(_ context.Context, r engine.ExecRequest) (engine.ExecResult, error) {
				want := &wire.Terminal{Rows: 30, Cols: 100, Term: "xterm-256color"}
				if diff := cmp.Diff(want, r.Streams.Terminal); diff != "" {
					t.Errorf("terminal (-want +got):\n%s", diff)
				}
				if s.modes(t) != before {
					t.Error("raw before anything runs: Ctrl-C could not stop a slow start")
				}
				r.Streams.Started()
				if s.modes(t) == before {
					t.Error("not raw once the command is sent: Ctrl-C would reach git and hooks as well")
				}
				if _, err := io.WriteString(s.user, "x"); err != nil {
					t.Error(err)
				}
				// Without a line break only a raw terminal gives the byte.
				b := make([]byte, 1)
				if n, err := r.Streams.Stdin.Read(b); n != 1 || b[0] != 'x' || err != nil {
					t.Errorf("read %d bytes %q: %v", n, b, err)
				}
				return c.end()
			}}
			code := -1
			func() {
				defer func() { _ = recover() }()
				code = s.session(e).Run(t.Context(), "exec", "fix", "--", "vi")
			}()
			if code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			if s.modes(t) != before {
				t.Error("the terminal is not as it was")
			}
		})
	}
}

func TestWindowChangesReachTheCommand(t *testing.T) {
	s := newScreen(t)
	e := &fake{exec: func(_ context.Context, r engine.ExecRequest) (engine.ExecResult, error) {
		if err := pty.Setsize(s.program, &pty.Winsize{Rows: 10, Cols: 20}); err != nil {
			t.Error(err)
		}
		// The kernel signals the foreground group of the terminal's session;
		// this test is not in it.
		if err := syscall.Kill(os.Getpid(), syscall.SIGWINCH); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(wire.Terminal{Rows: 10, Cols: 20, Term: "xterm-256color"}, <-r.Streams.Resize); diff != "" {
			t.Errorf("size (-want +got):\n%s", diff)
		}
		return engine.ExecResult{}, nil
	}}
	if code := s.session(e).Run(t.Context(), "shell", "fix", "--", "vi"); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func TestNoTerminalWhenTheOutputIsAPipe(t *testing.T) {
	s := newScreen(t)
	e := &fake{exec: func(_ context.Context, r engine.ExecRequest) (engine.ExecResult, error) {
		if r.Streams.Terminal != nil {
			t.Error("a terminal for a command whose output is piped on")
		}
		return engine.ExecResult{}, nil
	}}
	session := s.session(e)
	var out bytes.Buffer
	session.Stdout = &out
	if code := session.Run(t.Context(), "exec", "fix", "--", "ls"); code != 0 {
		t.Errorf("exit code %d", code)
	}
	session.Stdout = s.program
	if code := session.Run(t.Context(), "exec", "--json", "fix", "--", "ls"); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func TestSignalsReachTheCommandAndNotLitterbox(t *testing.T) {
	e := &fake{exec: func(ctx context.Context, r engine.ExecRequest) (engine.ExecResult, error) {
		r.Streams.Started() // the command may run before its streams are used
		for _, s := range []struct {
			signal syscall.Signal
			want   string
		}{{syscall.SIGTERM, "TERM"}, {syscall.SIGINT, "INT"}, {syscall.SIGQUIT, "QUIT"}, {syscall.SIGHUP, "HUP"}} {
			if err := syscall.Kill(os.Getpid(), s.signal); err != nil {
				t.Error(err)
			}
			if got := <-r.Streams.Signals; got != s.want {
				t.Errorf("signal %s arrives as %s", s.want, got)
			}
		}
		if ctx.Err() != nil {
			t.Error("the request was given up")
		}
		return engine.ExecResult{Exit: wire.Exit{Code: 143, Signal: "TERM"}}, nil
	}}
	wantOutcome(t, lb(t, e, "", "exec", "fix", "--", "sleep"), outcome{143, "", ""})
}

func TestInterruptEndsOtherCommands(t *testing.T) {
	e := &fake{create: func(ctx context.Context, _ engine.CreateRequest) (engine.Creation, error) {
		if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
			t.Error(err)
		}
		<-ctx.Done()
		return engine.Creation{}, fault.Wrap(fault.Canceled, ctx.Err(), "cannot create %q", "fix")
	}}
	wantOutcome(t, lb(t, e, "", "create", "fix"), outcome{130, "", "litterbox: interrupted: cannot create \"fix\"\n"})
}

func TestAnInterruptIsNamedWhateverBrokeByIt(t *testing.T) {
	for _, s := range []struct {
		err  error
		want string
	}{
		{fault.New(fault.Unavailable, "cannot start the keeper").WithHint("litterbox doctor"), "interrupted: cannot start the keeper"},
		{fault.New(fault.Canceled, "canceled: nothing was made"), "canceled: nothing was made"},
		{fmt.Errorf("cannot read: %w", context.Canceled), "interrupted: cannot read"},
		{errors.Join(context.Canceled, fault.New(fault.Internal, "the disk broke")), "interrupted\nlitterbox: interrupted: the disk broke"},
	} {
		e := &fake{create: func(ctx context.Context, _ engine.CreateRequest) (engine.Creation, error) {
			if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
				t.Error(err)
			}
			<-ctx.Done()
			return engine.Creation{}, s.err
		}}
		wantOutcome(t, lb(t, e, "", "create", "fix"), outcome{130, "", "litterbox: " + s.want + "\n"})
	}
}

func TestTheSecondInterruptEndsAMerge(t *testing.T) {
	e := &contextFake{fake: &fake{}, merge: func(ctx context.Context, _ engine.MergeRequest) (engine.MergeResult, error) {
		caught := make(chan os.Signal, 1)
		signal.Notify(caught, syscall.SIGINT)
		defer signal.Stop(caught)
		for range 2 {
			if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
				t.Error(err)
			}
			<-caught // or the kernel would merge the two into one
		}
		<-ctx.Done()
		return engine.MergeResult{}, ctx.Err()
	}}
	wantOutcome(t, lb(t, e, "", "merge", "fix"), outcome{130, "", "litterbox: interrupted\n"})
}

func TestNetworkNoteForPeopleOnly(t *testing.T) {
	e := &fake{create: func(context.Context, engine.CreateRequest) (engine.Creation, error) {
		return engine.Creation{Info: info("fix")}, nil
	}}
	const note = "note: it has no network access; to open a host: litterbox allow fix HOST"
	if got := lb(t, e, "", "create", "fix"); strings.Contains(got.Stderr, note) {
		t.Errorf("a script is told: %q", got.Stderr)
	}
	s := newScreen(t)
	if code := s.session(e).Run(t.Context(), "create", "fix"); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if shown := s.shown(t); strings.Count(shown, note) != 1 {
		t.Errorf("shown: %q", shown)
	}
}

// workingFake has an agent at work until its context ends.
type workingFake struct {
	*fake
	follow func(context.Context)
	stop   func()
}

func (*workingFake) Exists(context.Context, string, string) (bool, error) { return true, nil }

func (*workingFake) CheckAgent(context.Context, engine.AgentTask) ([]string, error) { return nil, nil }

func (*workingFake) StartAgent(_ context.Context, task engine.AgentTask) (engine.Run, []string, error) {
	return engine.Run{Sandbox: task.Name, Title: "Claude Code", State: sandbox.RunWorking}, nil, nil
}

func (f *workingFake) FollowAgent(ctx context.Context, run engine.Run, _ bool, _ func(engine.RunLine) error) (engine.Run, error) {
	f.follow(ctx)
	return run, nil
}

func (f *workingFake) StopAgent(engine.Run) error {
	f.stop()
	return nil
}

func TestASecondInterruptLeavesAnAgentAtWork(t *testing.T) {
	s := newScreen(t)
	interrupt := func() {
		if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
			t.Error(err)
		}
	}
	e := &workingFake{fake: &fake{}, stop: func() { t.Error("the agent is ended") }, follow: func(ctx context.Context) {
		interrupt()
		if _, err := bufio.NewReader(s.user).ReadString(':'); err != nil {
			t.Error(err)
		}
		interrupt()
		<-ctx.Done()
	}}
	session := s.session(nil)
	session.Engine = e
	if code := session.Run(t.Context(), "agent", "run", "claude", "Fix it", "--in", "fix"); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if shown := s.shown(t); !strings.Contains(shown, "Claude Code keeps working in fix") {
		t.Errorf("shown: %q", shown)
	}
}

// secretFake stores values.
type secretFake struct {
	*fake
	set func(context.Context, engine.SecretRequest) (string, error)
}

func (f *secretFake) SetSecret(ctx context.Context, r engine.SecretRequest) (string, error) {
	return f.set(ctx, r)
}

func (*secretFake) Secrets(context.Context, string) ([]engine.Secret, error) { return nil, nil }

func TestASecretIsNotShownWhileItIsTyped(t *testing.T) {
	const value = "sk-typed-by-hand"
	for _, c := range []struct {
		name, answer string
		code         int
		stored       string
	}{
		{"a line", value + "\n", 0, value},
		{"an interrupt instead", "", 130, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScreen(t)
			before := s.modes(t)
			var stored string
			e := &secretFake{fake: &fake{}, set: func(ctx context.Context, r engine.SecretRequest) (string, error) {
				value, err := r.Read(ctx)
				stored = string(value)
				return "age:one", err
			}}
			asked := make(chan string, 1)
			go func() {
				// The answer comes as soon as the question can be seen.
				text, err := bufio.NewReader(s.user).ReadString(':')
				asked <- text
				if err != nil {
					t.Error(err)
				}
				if _, err := io.WriteString(s.user, c.answer); err != nil {
					t.Error(err)
				}
				if c.code == 130 { // Ctrl-C itself means nothing outside of the session, and empties the queues of the terminal
					if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
						t.Error(err)
					}
				}
			}()
			session := s.session(nil)
			session.Engine = e
			if code := session.Run(t.Context(), "secrets", "set", "one"); code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			shown := <-asked + s.shown(t)
			if !strings.Contains(shown, "value of one (not shown):") || strings.Contains(shown, "sk-") {
				t.Errorf("shown: %q", shown)
			}
			if stored != c.stored {
				t.Errorf("stored %q, want %q", stored, c.stored)
			}
			if s.modes(t) != before {
				t.Error("the terminal is not as it was")
			}
		})
	}
}
