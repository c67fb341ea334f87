package cli

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// askPatience is how long a question about the network waits for its answer.
const askPatience = time.Minute

func askFlag(cmd *cobra.Command, ask *bool) {
	cmd.Flags().BoolVar(ask, "ask", false, "ask before refusing a destination that no rule allows, or a signature")
}

// checkAsk refuses --ask where no one could answer.
func (c *console) checkAsk(ask bool) error {
	if !ask || c.canAsk() {
		return nil
	}
	return fault.New(fault.Unsupported, "cannot ask about the network: standard input and standard error are not a terminal in the foreground").
		WithHint("litterbox network NAME --suggest")
}

// asking puts questions to the user of a terminal on which a command runs. While
// one is open, the command's output waits, and typed keys are the answer. A
// question stands on lines of its own; over a program that has the whole screen it
// takes the last lines, and lets the program draw again.
type asking struct {
	console  *console
	keyboard *keyboard
	raw      bool // no line editing, and no echo but litterbox's
	size     func() wire.Terminal
	redraw   func(context.Context)
	flush    func() // drops what was typed and not read
	patience time.Duration
	// interrupts begins to tell of them. They are for the command too; where
	// the terminal is raw they are keys.
	interrupts func() (caught <-chan os.Signal, stop func())

	mu     gate // held while a question is open
	screen screen
	wrote  time.Time // when the command last printed something
}

// A question and the output before it come by different paths: a question waits
// until nothing has been printed for quiet, or for unquiet where a command prints
// on and on.
const (
	quiet   = 100 * time.Millisecond
	unquiet = time.Second
)

func catchInterrupts() (<-chan os.Signal, func()) {
	caught := make(chan os.Signal, 1)
	catch(caught, os.Interrupt)
	return caught, func() { signal.Stop(caught) }
}

// gate is a lock, which tests with a clock of their own can wait for.
type gate chan struct{}

func (g gate) Lock()   { g <- struct{}{} }
func (g gate) Unlock() { <-g }

// held is output that waits for the end of a question.
type held struct {
	a *asking
	io.Writer
}

func (h held) Write(p []byte) (int, error) {
	h.a.mu.Lock()
	defer h.a.mu.Unlock()
	h.a.screen.watch(p)
	defer func() { h.a.wrote = time.Now() }()
	return h.Writer.Write(p)
}

// awaitQuiet lets output printed before a question appear before it.
func (a *asking) awaitQuiet(ctx context.Context) {
	began := time.Now()
	for last := began; ; {
		wait := min(quiet-time.Since(last), unquiet-time.Since(began))
		if wait <= 0 {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		a.mu.Lock()
		if a.wrote.After(last) {
			last = a.wrote
		}
		a.mu.Unlock()
	}
}

// settle is how long no key may come after a question has appeared before one
// counts: keys typed at that moment are for the command, and are not meant as a
// rule.
const settle = 500 * time.Millisecond

// settled waits until the user has seen the question, and drops keys typed before
// that. It is false when no answer can come.
func (a *asking) settled(ctx context.Context, interrupt <-chan os.Signal, typed <-chan []byte) bool {
	still := time.NewTimer(settle)
	defer still.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-interrupt:
			return false
		case _, open := <-typed:
			if !open {
				return false
			}
			still.Reset(settle)
		case <-still.C:
			a.flush() // a line whose end was not typed yet
			return true
		}
	}
}

// ask is the Ask of an engine.ExecRequest.
func (a *asking) ask(ctx context.Context, q engine.Question) engine.Decision {
	a.awaitQuiet(ctx)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.console.progress.clear()
	ctx, cancel := context.WithTimeout(ctx, a.patience)
	defer cancel()
	interrupt, stop := a.interrupts()
	defer stop()
	typed, done := a.keyboard.question()
	defer done()
	w := word(q)
	shown := a.show(w)
	defer a.restore(ctx, shown)
	if !a.settled(ctx, interrupt, typed) {
		a.write("\r\nrefused\r\n")
		return engine.NotNow
	}
	a.invite(w, shown)
	var line answerLine
	for {
		select {
		case <-ctx.Done():
			a.write("\r\nno answer: refused\r\n")
			return engine.NotNow
		case <-interrupt:
			a.write("\r\nrefused\r\n")
			return engine.NotNow
		case keys, open := <-typed:
			if !open {
				return engine.NotNow
			}
			echo, complete := line.enter(keys)
			if a.raw {
				a.write(echo)
			}
			if !complete {
				continue
			}
		}
		if decision, ok := decision(line.take()); ok && (!w.signature || decision == engine.Once || decision == engine.NoMore || decision == engine.NotNow) {
			return decision
		}
		a.write(w.again())
	}
}

// decision reads an answer; ok is false when it is none.
func decision(line string) (engine.Decision, bool) {
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "o", "once":
		return engine.Once, true
	case "s", "sandbox":
		return engine.ThisSandbox, true
	case "r", "repository":
		return engine.ThisRepository, true
	case "n", "never":
		return engine.Never, true
	case "d", "deny", "deny all":
		return engine.NoMore, true
	case "":
		return engine.NotNow, true
	}
	return "", false
}

// draws adds to the changes of the window's size those that tell a program to
// redraw its screen.
func (a *asking) draws(ctx context.Context, now func() wire.Terminal, sizes <-chan wire.Terminal) <-chan wire.Terminal {
	merged := make(chan wire.Terminal)
	put := func(ctx context.Context, size wire.Terminal) {
		select {
		case merged <- size:
		case <-ctx.Done():
		}
	}
	go func() {
		for {
			select {
			case size := <-sizes:
				put(ctx, size)
			case <-ctx.Done():
				return
			}
		}
	}()
	a.size = now
	a.redraw = func(ctx context.Context) {
		size := now()
		smaller := size
		smaller.Rows--
		put(ctx, smaller) // a size that does not change is not news
		put(ctx, size)
	}
	return merged
}

func (a *asking) write(text string) { _, _ = io.WriteString(a.console.stderr, text) }

// answerLine is a line as it is typed.
type answerLine struct {
	text    []byte
	partial []byte // of a sequence whose end has not come
}

// enter takes keys and gives their echo; complete is true at the end of the line.
// Keys that are not text, such as arrows, are left out, and so are the terminal's
// own answers to a program's queries.
func (l *answerLine) enter(keys []byte) (echo string, complete bool) {
	keys = append(l.partial, keys...)
	l.partial = nil
	for len(keys) > 0 {
		n, whole := sequence(keys)
		if !whole {
			l.partial = append([]byte(nil), keys[:2]...) // which kind is all that counts
			return echo, false
		}
		if n > 1 {
			keys = keys[n:]
			continue
		}
		key := keys[0]
		keys = keys[1:]
		switch {
		case key == '\r' || key == '\n':
			return echo + "\r\n", true
		case key == 0x03 || key == 0x04 || key == 0x1b: // Ctrl-C, Ctrl-D, Escape
			l.text = nil
			return echo + "\r\n", true
		case (key == 0x7f || key == 0x08) && len(l.text) > 0:
			l.text = l.text[:len(l.text)-1]
			echo += "\b \b"
		case key >= ' ' && key < 0x7f && len(l.text) < 32:
			l.text = append(l.text, key)
			echo += string(rune(key))
		}
	}
	return echo, false
}

// sequence is the number of bytes before the next key: 1 for a plain key, Escape
// alone included, and more for a key that is not text (ECMA-48, control sequences;
// xterm's SS3) and for what a terminal answers to a program (control strings, which
// end with BEL or ST). whole is false when its end is missing. A control character
// is in none of them: it is a key, so that Return always is one.
func sequence(keys []byte) (n int, whole bool) {
	if len(keys) < 2 || keys[0] != 0x1b || keys[1] < ' ' {
		return 1, true
	}
	last := func(byte) bool { return true }
	switch keys[1] {
	case 'O':
	case '[':
		last = func(key byte) bool { return key >= 0x40 && key <= 0x7e }
	case ']', 'P', '_', '^', 'X':
		last = func(byte) bool { return false }
	default: // with Alt, and the ST behind a string
		return 2, true
	}
	for i, key := range keys[2:] {
		switch {
		case key == 0x07:
			return i + 3, true
		case key < ' ':
			return i + 2, true
		case last(key):
			return i + 3, true
		}
	}
	return len(keys), false
}

func (l *answerLine) take() string {
	text := string(l.text)
	l.text, l.partial = nil, nil
	return text
}

// screen notices whether the command has the whole screen for itself.
type screen struct {
	whole bool
	tail  []byte // a sequence may be split between two writes
}

// watch looks for the private modes 47, 1047 and 1049 (xterm's control
// sequences, "Alternate Screen Buffer").
func (s *screen) watch(p []byte) {
	data := append(s.tail, p...)
	last := -1
	for _, mode := range []string{"47", "1047", "1049"} {
		for end, whole := range map[string]bool{"h": true, "l": false} {
			if at := bytes.LastIndex(data, []byte("\x1b[?"+mode+end)); at > last {
				last, s.whole = at, whole
			}
		}
	}
	const longest = len("\x1b[?1049h") - 1
	s.tail = append([]byte(nil), data[max(0, len(data)-longest):]...)
}
