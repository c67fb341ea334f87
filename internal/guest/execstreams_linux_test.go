package guest_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// Unread input must not hold up other messages.
func TestInputNobodyReads(t *testing.T) {
	b := newBox(t)
	signals := make(chan string, 1)
	sent := &countingReader{after: wire.StdinWindow, then: func() { signals <- "TERM" }}
	exit, err := wire.Run(limit(t), b.open(), wire.Exec{Argv: argv("sleep", "1000"), Grace: time.Minute}, wire.Streams{Stdin: sent, Signals: signals})
	if err != nil || exit.Code != 143 {
		t.Errorf("%+v, %v", exit, err)
	}
}

// countingReader is endless, and acts once when a number of bytes were taken.
type countingReader struct {
	n, after int
	then     func()
}

func (c *countingReader) Read(p []byte) (int, error) {
	c.n += len(p)
	if c.n >= c.after && c.then != nil {
		c.then()
		c.then = nil
	}
	return len(p), nil
}

// A terminal that no one types on never ends; the command does.
func TestInputThatNeverEnds(t *testing.T) {
	b := newBox(t)
	never, typed := io.Pipe()
	defer typed.Close()
	if _, got := b.run(wire.Exec{Argv: argv("echo", "done")}, never); got.Out != "done\n" {
		t.Errorf("%+v", got)
	}
}

func TestInputBeyondTheWindow(t *testing.T) {
	b := newBox(t)
	sent := bytes.Repeat([]byte("0123456789abcde\n"), 3*wire.StdinWindow/16)
	_, got := b.run(wire.Exec{Argv: argv("cat")}, bytes.NewReader(sent))
	if got.Code != 0 || got.Out != string(sent) {
		t.Errorf("exit %d, %d bytes of %d came back", got.Code, len(got.Out), len(sent))
	}
	_, got = b.run(wire.Exec{Argv: argv("head", "-c", "5")}, bytes.NewReader(sent))
	if diff := cmp.Diff(outcome{0, "", "01234", ""}, got); diff != "" {
		t.Error(diff)
	}
}

// A client that sends more than it was allowed is cut off.
func TestInputWithoutCredit(t *testing.T) {
	b := newBox(t)
	s := b.open()
	command := wire.Exec{Argv: argv("sleep", "1000")}
	if err := wire.WriteJSON(s, wire.KindRequest, wire.Request{Version: wire.Version, Op: wire.OpExec, Exec: &command}); err != nil {
		t.Fatal(err)
	}
	go func() {
		for wire.WriteFrame(s, wire.KindStdin, make([]byte, wire.StdinWindow/2)) == nil {
		}
	}()
	r := wire.NewReader(s)
	for {
		if _, _, err := r.Next(); err != nil {
			break
		}
	}
	eventually(t, "sleep is gone", func() bool {
		_, got := b.run(wire.Exec{Argv: argv("pgrep", "-x", "sleep")}, nil)
		return got.Code == 1
	})
}

// refusingWriter takes one piece and then is a closed pipe.
type refusingWriter struct{ taken bool }

func (w *refusingWriter) Write(p []byte) (int, error) {
	if w.taken {
		return 0, &os.PathError{Op: "write", Path: "|1", Err: syscall.EPIPE}
	}
	w.taken = true
	return len(p), nil
}

func TestClosedOutputEndsTheCommand(t *testing.T) {
	b := newBox(t)
	for _, script := range []string{"yes", `trap "" PIPE; yes & wait`} {
		exit, err := wire.Run(limit(t), b.open(), wire.Exec{Argv: argv("sh", "-c", script)}, wire.Streams{Stdout: &refusingWriter{}})
		if err != nil || exit.Code != 141 || len(exit.Background) > 0 {
			t.Errorf("%s: %+v, %v", script, exit, err)
		}
	}
	full := errors.New("disk full")
	exit, err := wire.Run(limit(t), b.open(), wire.Exec{Argv: argv("yes"), Grace: time.Minute}, wire.Streams{Stdout: failingWriter{full}})
	if !errors.Is(err, full) || exit.Code != 141 && exit.Code != 143 {
		t.Errorf("%+v, %v", exit, err)
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }
