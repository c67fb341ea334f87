package cli

import (
	"context"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/redteam"
)

// UseCases is the interface that a fake engine implements.
type UseCases = useCases

// Session is one command line with everything around it, for tests.
type Session struct {
	Engine UseCases
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	Env    map[string]string
	Now    time.Time
}

// Run runs a command line.
func (s Session) Run(ctx context.Context, args ...string) int {
	c := newConsole(s.Stdin, s.Stdout, s.Stderr, func(key string) string { return s.Env[key] })
	c.now = func() time.Time { return s.Now }
	build := func() (useCases, error) {
		if s.Engine == nil {
			return nil, fault.New(fault.Internal, "this command must not build an engine")
		}
		return s.Engine, nil
	}
	return run(ctx, c, "1.2.3", build, args)
}

// Commands lists every command path, the root as an empty one.
func Commands() []string {
	root := newRoot(&session{console: newConsole(nil, io.Discard, io.Discard, os.Getenv)}, "")
	paths := []string{""}
	for _, c := range root.Commands() {
		if c.Name() != "help" {
			paths = append(paths, c.Name())
		}
	}
	return paths
}

// CommandExample gives the example of a command.
func CommandExample(name string) string {
	root := newRoot(&session{console: newConsole(nil, io.Discard, io.Discard, os.Getenv)}, "")
	c, _, err := root.Find([]string{name})
	if err != nil {
		return ""
	}
	return c.Example
}

// Functions that are tested directly.
var (
	Clean      = clean
	CleanText  = cleanText
	UnsafeRune = unsafeRune
	Quoted     = quoted
	HostPath   = hostPath
	Report     = report
	Browsers   = browsers
)

// ExitTable gives the table as a map.
func ExitTable() map[fault.Kind]int {
	codes := map[fault.Kind]int{}
	for _, row := range exitTable() {
		codes[row.kind] = row.code
	}
	return codes
}

// Progress is a progress display on w.
type Progress struct{ p *progress }

// NewProgress makes one; bar says that w is a terminal of 40 columns.
func NewProgress(w io.Writer, bar bool) Progress {
	return Progress{&progress{out: w, bar: bar, width: func() int { return 40 }}}
}

func (p Progress) Update(label string, done, total int) { p.p.update(label, done, total) }
func (p Progress) Clear()                               { p.p.clear() }

// Relay feeds signals to a relay whose clock stands at the given offsets, and
// returns the signals that the command gets and whether the request was given up.
func Relay(started bool, signals []os.Signal, at []time.Duration) (names []string, gaveUp bool) {
	var clock time.Time
	r := &relay{
		out:     make(chan string, 16),
		started: func() bool { return started },
		cancel:  func() { gaveUp = true },
		now:     func() time.Time { return clock },
	}
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for i, s := range signals {
		clock = start.Add(at[i])
		r.handle(s)
	}
	close(r.out)
	for name := range r.out {
		names = append(names, name)
	}
	return names, gaveUp
}

// Spared tells for each signal whether it is left to git.
func Spared(patience int, signals ...os.Signal) (spared []bool) {
	for _, s := range signals {
		spared = append(spared, spare(s, &patience))
	}
	return spared
}

// Ask puts a question on a raw terminal, and hangs it up afterwards. Each of
// printing gets where the command's output goes and runs at the same time.
func Ask(ctx context.Context, keys *io.PipeReader, shown io.Writer, q engine.Question, printing ...func(io.Writer)) engine.Decision {
	c := newConsole(strings.NewReader(""), io.Discard, shown, func(string) string { return "" })
	a := &asking{mu: make(gate, 1), console: c, keyboard: newKeyboard(keys), raw: true, redraw: func(context.Context) {}, flush: func() {}, patience: askPatience,
		interrupts: func() (<-chan os.Signal, func()) { return nil, func() {} }}
	defer func() {
		_ = keys.Close()
		a.keyboard.question() // notices it
	}()
	for _, print := range printing {
		go print(held{a, shown})
	}
	return a.ask(ctx, q)
}

// Layout is a question on a screen that another program uses.
func Layout(q engine.Question, cols, rows int) (lines []string, prompt string) {
	w := word(q)
	return w.lines(cols, min(rows-1, rows/2+1)), w.prompt(cols)
}

func NewKeyboard(source io.Reader) *keyboard { return newKeyboard(source) }

func (k *keyboard) Question() (<-chan []byte, func()) { return k.question() }

// Whole tells the state of a screen after text in pieces of size bytes.
func Whole(text string, size int) bool {
	var s screen
	for len(text) > 0 {
		n := min(size, len(text))
		s.watch([]byte(text[:n]))
		text = text[n:]
	}
	return s.whole
}

// AllCommands lists the commands that do something, with those below others.
func AllCommands() []string {
	var paths []string
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Runnable() && c.Name() != "help" {
			paths = append(paths, strings.TrimPrefix(c.CommandPath(), "litterbox "))
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(newRoot(&session{console: newConsole(nil, io.Discard, io.Discard, os.Getenv)}, ""))
	return paths
}

// Redteam is litterbox redteam with attacks of a test's own.
func (s Session) Redteam(ctx context.Context, attack func(context.Context, redteam.Options) (redteam.Report, error), json bool) int {
	c := newConsole(s.Stdin, s.Stdout, s.Stderr, func(key string) string { return s.Env[key] })
	return report(c.stderr, runRedteam(ctx, &redteamOptions{console: c, attack: attack, json: json}), false)
}
