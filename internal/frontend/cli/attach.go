package cli

import (
	"context"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/term"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// attachment connects the user's streams, window and signals to one command.
type attachment struct {
	streams engine.Streams
	ask     func(context.Context, engine.Question) engine.Decision // nil where no one is asked
	detach  func()                                                 // restores the terminal; safe to call twice and in a panic
}

// attach prepares streams for a command. It gets a terminal of its own when stdin
// and stdout are terminals; not with captured, which then takes the output. With
// ask the user answers questions on the same terminal. The returned context ends
// only when the user gives up; see relay.
func (c *console) attach(parent context.Context, captured *capture, ask bool) (context.Context, attachment) {
	ctx, cancel := context.WithCancel(parent)
	var started atomic.Bool

	caught := make(chan os.Signal, 16)
	for s := range relayed() {
		catch(caught, s)
	}
	r := &relay{out: make(chan string, 16), started: started.Load, cancel: cancel, now: c.now}
	go r.run(ctx, caught)

	stdin := c.stdin
	var stdout, stderr io.Writer = clearing{c.progress, c.stdout}, clearing{c.progress, c.stderr}
	if captured != nil {
		stdout, stderr = &captured.stdout, &captured.stderr
	}
	a := &asking{mu: make(gate, 1), console: c, redraw: func(context.Context) {}, flush: func() {}, patience: askPatience, interrupts: catchInterrupts}
	if ask {
		stdout, stderr = held{a, stdout}, held{a, stderr}
	}
	streams := engine.Streams{
		Started: func() { started.Store(true) },
		Stdout:  stdout, Stderr: stderr, Signals: r.out,
	}
	restore := func() {}
	if in, ok := terminal(c.stdin); ok {
		out, outTTY := terminal(c.stdout)
		a.flush = func() { flushInput(in) }
		switch {
		case !foreground(in):
			stdin = strings.NewReader("")
		case outTTY && captured == nil:
			raw := &rawInput{tty: in}
			stdin, restore = raw, raw.restore
			streams.Started = func() {
				_ = raw.makeRaw() // the first read meets the same error
				started.Store(true)
			}
			size := windowSize(out, c.env("TERM"))
			streams.Terminal = &size
			now := func() wire.Terminal { return windowSize(out, c.env("TERM")) }
			sizes := resizes(ctx, out, c.env("TERM"))
			if ask {
				sizes = a.draws(ctx, now, sizes)
			}
			streams.Resize, a.raw = sizes, true
		}
	}
	made := attachment{detach: func() {
		restore()
		signal.Stop(caught)
		cancel()
	}}
	if ask {
		a.keyboard = newKeyboard(stdin)
		stdin, made.ask = a.keyboard, a.ask
	}
	streams.Stdin = stdin
	made.streams = streams
	return ctx, made
}

// rawInput is the user's terminal, put into raw mode when the command is sent and
// not before: while a sandbox is still being made, Ctrl-C must stay a signal.
type rawInput struct {
	tty *os.File

	mu       sync.Mutex
	state    *term.State
	restored bool
}

func (r *rawInput) Read(p []byte) (int, error) {
	if err := r.makeRaw(); err != nil {
		return 0, err
	}
	return r.tty.Read(p)
}

func (r *rawInput) makeRaw() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state != nil || r.restored {
		return nil
	}
	state, err := term.MakeRaw(int(r.tty.Fd()))
	r.state = state
	return err
}

func (r *rawInput) restore() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state != nil && !r.restored {
		// Nothing can be done about an error: the terminal has hung up.
		_ = term.Restore(int(r.tty.Fd()), r.state)
	}
	r.restored = true
}

func windowSize(tty *os.File, termName string) wire.Terminal {
	cols, rows, err := term.GetSize(int(tty.Fd()))
	if err != nil || cols <= 0 || rows <= 0 {
		cols, rows = 80, 24 // a serial line does not know its size
	}
	return wire.Terminal{Rows: uint16(rows), Cols: uint16(cols), Term: termName}
}

// resizes delivers the size of tty after each change, the newest only.
func resizes(ctx context.Context, tty *os.File, termName string) <-chan wire.Terminal {
	out := make(chan wire.Terminal, 1)
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, syscall.SIGWINCH)
	go func() {
		defer signal.Stop(changed)
		for {
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
			select {
			case <-out: // an older size that was never fetched
			default:
			}
			out <- windowSize(tty, termName)
		}
	}()
	return out
}
