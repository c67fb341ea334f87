package cli

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// screenSize is the size of the terminal; a usual size where there is none yet.
func (c *console) screenSize() wire.Terminal {
	if out, tty := terminal(c.stdout); tty {
		return windowSize(out, c.env("TERM"))
	}
	return wire.Terminal{Rows: 24, Cols: 80, Term: "xterm-256color"}
}

// attachScreen shows a client's full-screen interface on the user's terminal
// until the run ends, the user leaves it with Ctrl-] d, or the terminal hangs
// up. Every other key is the client's.
func (c *console) attachScreen(ctx context.Context, e useCases, run engine.Run) (ended bool, err error) {
	in, _ := terminal(c.stdin)
	out, _ := terminal(c.stdout)
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	hup := make(chan os.Signal, 1)
	catch(hup, syscall.SIGHUP, syscall.SIGTERM)
	defer signal.Stop(hup)
	go func() {
		select {
		case <-hup:
			leave()
		case <-ctx.Done():
		}
	}()
	raw := &rawInput{tty: in}
	defer raw.restore()
	size := windowSize(out, c.env("TERM"))
	c.progress.clear()
	ended, err = e.AttachAgent(ctx, run, engine.Streams{
		Stdin: &leaving{source: raw}, Stdout: c.stdout, Terminal: &size, Resize: resizes(ctx, out, c.env("TERM")),
	})
	raw.restore()
	if !ended {
		// The client still believes that the terminal is as it has set it.
		_, _ = io.WriteString(c.stdout, ordinaryTerminal)
	}
	return ended, err
}

// ordinaryTerminal takes back what full-screen programs set: the other screen,
// a hidden cursor, colours, mouse and paste reports, and other keyboards.
const ordinaryTerminal = "\x1b[?1049l\x1b[?25h\x1b[0m\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1004l\x1b[?2004l\x1b[<u\x1b[>4;0m\r\n"

// leaving reads typed keys until Ctrl-] and d, which leave. Ctrl-] twice sends one
// to the program.
type leaving struct {
	source io.Reader
	held   bool   // Ctrl-] was typed
	ready  []byte // what is to be given
	over   bool
}

// leaveKeys are Ctrl-] as terminals send it: as a byte, and in the protocol of
// keyboards that report modifiers.
var leaveKeys = [][]byte{{0x1d}, []byte("\x1b[93;5u"), []byte("\x1b[27;5;93~")}

func (l *leaving) Read(p []byte) (int, error) {
	for len(l.ready) == 0 {
		if l.over {
			return 0, io.EOF
		}
		buffer := make([]byte, 4<<10)
		n, err := l.source.Read(buffer)
		l.take(buffer[:n])
		if err != nil {
			if len(l.ready) == 0 {
				return 0, err
			}
			break
		}
	}
	n := copy(p, l.ready)
	l.ready = l.ready[n:]
	return n, nil
}

func (l *leaving) take(typed []byte) {
	for len(typed) > 0 && !l.over {
		key := 0
		for _, one := range leaveKeys {
			if bytes.HasPrefix(typed, one) {
				key = len(one)
			}
		}
		switch {
		case l.held && key == 0 && (typed[0] == 'd' || typed[0] == 'D' || typed[0] == 0x04):
			l.over = true
		case l.held:
			// Not a leave key: the program gets what was held back.
			l.held = false
			l.ready = append(l.ready, leaveKeys[0]...)
			if key > 0 {
				typed = typed[key:]
			}
		case key > 0:
			l.held = true
			typed = typed[key:]
		default:
			l.ready = append(l.ready, typed[0])
			typed = typed[1:]
		}
	}
}
