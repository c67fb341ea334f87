package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// console is the user's side of the program. The rules of every message:
//
//   - stdout carries the answer, and only the answer; with --json exactly one
//     document;
//   - stderr carries notes ("note: …"), progress, questions and errors;
//   - what an agent chose passes through clean first;
//   - questions are asked only where stdin and stderr are terminals.
type console struct {
	stdin    io.Reader
	stdout   io.Writer
	stderr   io.Writer
	env      func(string) string
	now      func() time.Time
	progress *progress
}

func newConsole(stdin io.Reader, stdout, stderr io.Writer, env func(string) string) *console {
	file, tty := terminal(stderr)
	return &console{
		stdin: stdin, stdout: stdout, stderr: stderr, env: env, now: time.Now,
		progress: &progress{
			out: stderr,
			bar: tty && env("TERM") != "dumb",
			width: func() int {
				if cols, _, err := term.GetSize(int(file.Fd())); err == nil && cols > 0 {
					return cols
				}
				return 80
			},
		},
	}
}

// terminal gives the file behind a stream when it is a terminal.
func terminal(stream any) (*os.File, bool) {
	f, ok := stream.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil, false
	}
	return f, true
}

// foreground reports whether this process may use the terminal: a background
// job that reads it or changes its modes is stopped (SIGTTIN and SIGTTOU,
// termios(3)).
func foreground(tty *os.File) bool {
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err != nil || group == unix.Getpgrp()
}

// print writes to stdout, after the progress bar is gone.
func (c *console) print(format string, args ...any) error {
	c.progress.clear()
	_, err := fmt.Fprintf(c.stdout, format, args...)
	return err
}

// document writes the JSON document of the command.
func (c *console) document(value any) error {
	c.progress.clear()
	return writeDocument(c.stdout, value)
}

// jsonLine writes one of many documents, on a line of its own.
func (c *console) jsonLine(value any) error {
	line, err := json.Marshal(value)
	if err != nil {
		return fault.Wrap(fault.Internal, err, "cannot write JSON")
	}
	return c.print("%s\n", escapeUnsafe(line))
}

// note tells something beside the answer.
func (c *console) note(format string, args ...any) {
	c.progress.clear()
	text := cleanText(fmt.Sprintf(format, args...))
	fmt.Fprintf(c.stderr, "note: %s\n", strings.ReplaceAll(text, "\n", "\n      "))
}

func (c *console) notes(texts []string) {
	for _, text := range texts {
		c.note("%s", text)
	}
}

// noteNoNetwork tells a person, not a script, how to open the network.
func (c *console) noteNoNetwork(name string) {
	if _, ok := terminal(c.stderr); ok {
		c.note("it has no network access; to open a host: litterbox allow %s HOST", name)
	}
}

// canAsk reports whether a person is there to answer.
func (c *console) canAsk() bool {
	in, inTTY := terminal(c.stdin)
	_, errTTY := terminal(c.stderr)
	return inTTY && errTTY && foreground(in)
}

// ask puts a question of one line; everything but y and yes means no. It ends
// with fault.Canceled at an interrupt.
func (c *console) ask(ctx context.Context, question string) (bool, error) {
	answer, err := c.answer(ctx, question+" [y/N]")
	return answer == "y" || answer == "yes", err
}

// answer puts a question and reads one line, in lower case.
func (c *console) answer(ctx context.Context, question string) (string, error) {
	c.progress.clear()
	// Its own subscription: apply and merge leave the first interrupt to git, and
	// during a question there is no git that could take it. It is set up before the
	// question, which can be interrupted as soon as it is seen.
	interrupt := make(chan os.Signal, 1)
	catch(interrupt, os.Interrupt)
	defer signal.Stop(interrupt)
	fmt.Fprintf(c.stderr, "%s ", clean(question))

	answer := make(chan string, 1)
	go func() {
		line, _ := readLine(c.stdin) // a terminal that has hung up answers nothing
		answer <- string(line)
	}()
	select {
	case line := <-answer:
		return strings.ToLower(strings.TrimSpace(line)), nil
	case <-interrupt:
	case <-ctx.Done():
	}
	fmt.Fprintln(c.stderr)
	return "", fault.New(fault.Canceled, "cannot go on: the question was interrupted")
}

// readLine reads a line byte by byte, because the rest belongs to the next reader
// of the terminal, git's editor for example. It returns what there is of a line that
// an error cuts off. At the end of a file a line needs no newline.
func readLine(r io.Reader) ([]byte, error) {
	line := make([]byte, 0, 4<<10) // no line of a terminal is longer (termios(3)): a secret leaves no copy behind
	for b := make([]byte, 1); ; {
		n, err := r.Read(b)
		switch {
		case n == 1 && b[0] == '\n':
			return line, nil
		case n == 1:
			line = append(line, b[0])
		}
		if errors.Is(err, io.EOF) && len(line) > 0 {
			return line, nil
		}
		if err != nil {
			return line, err
		}
	}
}

// style decorates text on a terminal, unless NO_COLOR (no-color.org) is set.
func (c *console) style(code, text string) string {
	if _, ok := terminal(c.stdout); !ok || c.env("NO_COLOR") != "" || c.env("TERM") == "dumb" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}
