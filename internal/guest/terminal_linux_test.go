package guest_test

import (
	"io"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// typist is a human at a terminal, who waits for a text, then types.
type typist struct {
	seen  strings.Builder
	steps []step
	keys  *io.PipeWriter
}

type step struct{ wait, typed string }

func (p *typist) Write(b []byte) (int, error) {
	p.seen.Write(b)
	for len(p.steps) > 0 && strings.Contains(p.seen.String(), p.steps[0].wait) {
		typed := p.steps[0].typed
		p.steps = p.steps[1:]
		p.seen.Reset()
		go func() { _, _ = io.WriteString(p.keys, typed) }()
	}
	return len(b), nil
}

func (b *box) terminal(t *testing.T, command wire.Exec, steps ...step) wire.Exit {
	t.Helper()
	stdin, keys := io.Pipe()
	defer keys.Close()
	person := &typist{steps: steps, keys: keys}
	if command.Terminal == nil {
		command.Terminal = &wire.Terminal{Rows: 24, Cols: 80, Term: "xterm"}
	}
	exit, err := wire.Run(limit(t), b.open(), command, wire.Streams{Stdin: stdin, Stdout: person})
	if err != nil {
		t.Fatalf("%v; still to come: %q; seen: %q", err, person.steps, person.seen.String())
	}
	if len(person.steps) > 0 {
		t.Fatalf("exit %d before %q; seen: %q", exit.Code, person.steps, person.seen.String())
	}
	return exit
}

func TestTerminal(t *testing.T) {
	b := newBox(t)
	_, got := b.run(wire.Exec{
		Argv:     argv("sh", "-c", `stty size; echo $TERM; test -t 0 && test -t 1 && test -t 2 && : </dev/tty && echo tty`),
		Terminal: &wire.Terminal{Rows: 30, Cols: 101, Term: "xterm-256color"},
	}, nil)
	if want := "30 101\r\nxterm-256color\r\ntty\r\n"; !strings.HasPrefix(got.Out, want) || got.Code != 0 {
		t.Errorf("%+v, want %q", got, want)
	}
}

func TestTerminalResize(t *testing.T) {
	b := newBox(t)
	sizes := make(chan wire.Terminal, 1)
	stdout := &watcher{want: "24 80", found: func() { sizes <- wire.Terminal{Rows: 50, Cols: 132} }}
	exit, err := wire.Run(limit(t), b.open(), wire.Exec{
		Argv:     argv("sh", "-c", `trap 'w=1' WINCH; stty size; until [ "$(stty size)$w" = "50 1321" ]; do sleep 0.01; done; exit 5`),
		Terminal: &wire.Terminal{Rows: 24, Cols: 80},
	}, wire.Streams{Stdout: stdout, Resize: sizes})
	if err != nil || exit.Code != 5 {
		t.Errorf("%+v, %v", exit, err)
	}
}

func TestTerminalEndOfInput(t *testing.T) {
	b := newBox(t)
	for _, typed := range []string{"", "line\n", "half a line"} {
		_, got := b.run(wire.Exec{Argv: argv("sh", "-c", "stty -echo; echo ready; cat; exit 4"), Terminal: &wire.Terminal{Rows: 24, Cols: 80}}, strings.NewReader(typed))
		if got.Code != 4 {
			t.Errorf("%q: %+v", typed, got)
		}
	}
}

func TestTerminalKeys(t *testing.T) {
	b := newBox(t)
	exit := b.terminal(t, wire.Exec{Argv: argv("sh", "-c", `trap 'exit 9' INT; echo ready; while :; do read line; done`)}, step{"ready", "\x03"})
	if exit.Code != 9 {
		t.Errorf("%+v", exit)
	}
}

func TestTerminalJobControl(t *testing.T) {
	b := newBox(t)
	exit := b.terminal(t, wire.Exec{Argv: argv("bash", "--norc", "-i"), Env: []string{"PS1=prompt$ "}},
		step{"prompt$ ", "sh -c 'trap \"echo on\"\"ward\" CONT; echo in''side; while :; do read line; done'\n"},
		step{"inside", "\x1a"},
		step{"Stopped", "fg\n"},
		step{"onward", "\x03"}, // only the foreground was continued
		step{"prompt$ ", "exit 6\n"},
	)
	if exit.Code != 6 || len(exit.Background) > 0 {
		t.Errorf("%+v", exit)
	}
}

// A signal reaches the job that the shell has put into the foreground, in a
// group of its own.
func TestTerminalSignalReachesTheForeground(t *testing.T) {
	b := newBox(t)
	signals := make(chan string, 1)
	stdout := &watcher{want: "inside", found: func() { signals <- "TERM" }}
	exit, err := wire.Run(limit(t), b.open(), wire.Exec{
		Argv:     argv("bash", "--norc", "-mc", `sh -c 'echo inside; exec sleep 1000'; echo "was $?"; exit 8`),
		Terminal: &wire.Terminal{Rows: 24, Cols: 80},
	}, wire.Streams{Stdin: neverEnding(t), Stdout: stdout, Signals: signals})
	if err != nil || len(exit.Background) > 0 {
		t.Errorf("%+v, %v, %q", exit, err, stdout.String())
	}
}

func neverEnding(t *testing.T) io.Reader {
	r, w := io.Pipe()
	t.Cleanup(func() { w.Close() })
	return r
}
