package wire_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// guest plays the other side: it sends each answer at once, then goes on
// reading until the client closes, and returns all it was sent.
func guest(t *testing.T, answers ...frame) (wire.Stream, <-chan []frame) {
	t.Helper()
	here, there := pair(t)
	for _, a := range answers {
		if err := wire.WriteFrame(there, a.Kind, []byte(a.Payload)); err != nil {
			t.Fatal(err)
		}
	}
	sent := make(chan []frame, 1)
	go func() {
		frames, _ := readAll(there)
		sent <- frames
	}()
	return here, sent
}

// request is the first frame as it should be.
func request(t *testing.T, r wire.Request) frame {
	t.Helper()
	r.Version = wire.Version
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return frame{wire.KindRequest, string(text)}
}

func TestCalls(t *testing.T) {
	ctx := context.Background()
	commit := strings.Repeat("0123456789", 4)
	for _, c := range []struct {
		name    string
		answers []frame
		call    func(wire.Stream, io.Writer) (any, error)
		request wire.Request
		sent    []frame
		result  any
		output  string
	}{
		{
			name:    "Greet",
			answers: []frame{{wire.KindResult, `{"version":1,"pid":7}`}},
			call:    func(s wire.Stream, _ io.Writer) (any, error) { return wire.Greet(ctx, s) },
			request: wire.Request{Op: wire.OpHello},
			result:  wire.Hello{Version: 1, PID: 7},
		}, {
			name:    "Read",
			answers: []frame{{wire.KindStdout, "he"}, {wire.KindStdout, "llo"}, {wire.KindResult, `{"path":"/w==","size":5,"mode":420}`}},
			call: func(s wire.Stream, w io.Writer) (any, error) {
				return wire.Read(ctx, s, []byte("a\xff"), 1, 2, w)
			},
			request: wire.Request{Op: wire.OpRead, Path: []byte("a\xff"), Offset: 1, Limit: 2},
			result:  wire.FileInfo{Path: []byte("\xff"), Size: 5, Mode: 0o644},
			output:  "hello",
		}, {
			name:    "FindHead",
			answers: []frame{{wire.KindResult, `{"commit":"` + commit + `","branch":"refs/heads/x"}`}},
			call:    func(s wire.Stream, _ io.Writer) (any, error) { return wire.FindHead(ctx, s) },
			request: wire.Request{Op: wire.OpHead},
			result:  wire.Head{Commit: commit, Branch: "refs/heads/x"},
		}, {
			name:    "Export",
			answers: []frame{{wire.KindStdout, "PACK"}, {wire.KindResult, "{}"}},
			call:    func(s wire.Stream, w io.Writer) (any, error) { return nil, wire.Export(ctx, s, "a", "b", w) },
			request: wire.Request{Op: wire.OpExport, Have: "a", Want: "b"},
			output:  "PACK",
		}, {
			name:    "Processes",
			answers: []frame{{wire.KindResult, `{"processes":[{"pid":2,"parent":1,"group":2,"command":"a\u001b]0;x\u0007 b"}]}`}},
			call:    func(s wire.Stream, _ io.Writer) (any, error) { return wire.Processes(ctx, s) },
			request: wire.Request{Op: wire.OpProcesses},
			result:  []wire.Process{{PID: 2, Parent: 1, Group: 2, Command: "a\ufffd]0;x\ufffd b"}},
		}, {
			name:    "Shutdown",
			answers: []frame{{wire.KindResult, "{}"}},
			call:    func(s wire.Stream, _ io.Writer) (any, error) { return nil, wire.Shutdown(ctx, s, 5) },
			request: wire.Request{Op: wire.OpShutdown, Grace: 5},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, sent := guest(t, c.answers...)
			var output bytes.Buffer
			result, err := c.call(s, &output)
			s.Close()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.result, result); diff != "" {
				t.Error(diff)
			}
			if output.String() != c.output {
				t.Errorf("output %q, want %q", output.String(), c.output)
			}
			if diff := cmp.Diff([]frame{request(t, c.request)}, <-sent); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWriteSendsTheContent(t *testing.T) {
	content := strings.Repeat("0123456789", 10000)
	here, there := pair(t)
	sent := make(chan []frame, 1)
	go func() {
		var frames []frame
		for r := wire.NewReader(there); ; {
			kind, payload, err := r.Next()
			if err != nil {
				break
			}
			frames = append(frames, frame{kind, string(payload)})
			if kind == wire.KindStdinEnd {
				_ = wire.WriteJSON(there, wire.KindResult, wire.FileInfo{Size: 3})
				break
			}
		}
		sent <- frames
	}()
	info, err := wire.Write(context.Background(), here, []byte("f"), 0o600, strings.NewReader(content))
	if err != nil || info.Size != 3 {
		t.Fatalf("%+v, %v", info, err)
	}
	frames := <-sent
	if diff := cmp.Diff(request(t, wire.Request{Op: wire.OpWrite, Path: []byte("f"), Mode: 0o600}), frames[0]); diff != "" {
		t.Error(diff)
	}
	var joined strings.Builder
	for _, f := range frames[1 : len(frames)-1] {
		if f.Kind != wire.KindStdin {
			t.Errorf("a frame of kind %q", f.Kind)
		}
		joined.WriteString(f.Payload)
	}
	if joined.String() != content {
		t.Error("the content came over changed")
	}
}

// The guest is untrusted: its answers are checked.
func TestCallsRefuseNonsense(t *testing.T) {
	ctx := context.Background()
	head := func(s wire.Stream) error { _, err := wire.FindHead(ctx, s); return err }
	run := func(s wire.Stream) error { _, err := wire.Run(ctx, s, wire.Exec{}, wire.Streams{}); return err }
	for _, c := range []struct {
		name   string
		answer frame
		call   func(wire.Stream) error
		want   string
	}{
		{"no JSON", frame{wire.KindResult, "{"}, head, "cannot understand the sandbox's answer: unexpected end of JSON input"},
		{"a commit that is an option", frame{wire.KindResult, `{"commit":"--all"}`}, head, "cannot use the HEAD that the sandbox names"},
		{"a branch with escapes", frame{wire.KindResult, `{"branch":"refs/heads/\u001b[m"}`}, head, "cannot use the HEAD that the sandbox names"},
		{"a branch elsewhere", frame{wire.KindResult, `{"branch":"../x"}`}, head, "cannot use the HEAD that the sandbox names"},
		{"output", frame{wire.KindStdout, "x"}, head, "cannot understand the sandbox: output where none belongs"},
		{"an exit code", frame{wire.KindResult, `{"code":-1}`}, run, "cannot use the exit code that the sandbox names: -1"},
		{"an empty error", frame{wire.KindError, `{}`}, run, "cannot understand the sandbox's error"},
	} {
		s, _ := guest(t, c.answer)
		if err := c.call(s); fault.KindOf(err) != fault.Unavailable || err.Error() != c.want {
			t.Errorf("%s: %v (%s)", c.name, err, fault.KindOf(err))
		}
	}
}

func TestCallsReturnTheGuestsError(t *testing.T) {
	for _, kind := range append(fault.Kinds(), "unheard_of") {
		text, _ := json.Marshal(wire.Failure{Kind: string(kind), Text: "cannot\x1b[31m do it", Hint: "wait"})
		s, _ := guest(t, frame{wire.KindError, string(text)})
		_, err := wire.Greet(context.Background(), s)
		want := &fault.Error{Kind: kind, Text: "cannot\ufffd[31m do it", Hint: "wait"}
		if kind == "unheard_of" {
			want.Kind = fault.Internal
		}
		if diff := cmp.Diff(error(want), err, cmpopts.EquateComparable()); diff != "" {
			t.Error(diff)
		}
	}
}

func TestCallEndsWithItsStreamOrContext(t *testing.T) {
	here, there := pair(t)
	there.Close()
	if _, err := wire.Greet(context.Background(), here); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("closed: %v", err)
	}
	s, _ := guest(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := wire.Greet(ctx, s); fault.KindOf(err) != fault.Canceled {
		t.Errorf("canceled: %v", err)
	}
	s, _ = guest(t)
	ctx, cancel = context.WithTimeout(context.Background(), 1)
	defer cancel()
	if _, err := wire.Greet(ctx, s); fault.KindOf(err) != fault.Timeout {
		t.Errorf("too late: %v", err)
	}
}

// pipeThatBreaks takes one piece.
type pipeThatBreaks struct {
	got   string
	cause error
}

func (p *pipeThatBreaks) Write(b []byte) (int, error) {
	if p.got != "" {
		return 0, p.cause
	}
	p.got = string(b)
	return len(b), nil
}

func TestRunGoesOnWithoutAReader(t *testing.T) {
	full := errors.New("no space")
	for _, c := range []struct {
		cause error
		want  wire.Exit
		err   error
	}{
		{&os.PathError{Op: "write", Path: "|1", Err: syscall.EPIPE}, wire.Exit{Code: 141, Signal: "PIPE"}, nil},
		{io.ErrClosedPipe, wire.Exit{Code: 141, Signal: "PIPE"}, nil},
		{full, wire.Exit{Code: 3}, full},
	} {
		s, sent := guest(t, frame{wire.KindStdout, "one"}, frame{wire.KindStdout, "two"}, frame{wire.KindStderr, "three"}, frame{wire.KindResult, `{"code":3}`})
		stdout, stderr := &pipeThatBreaks{cause: c.cause}, &bytes.Buffer{}
		exit, err := wire.Run(context.Background(), s, wire.Exec{}, wire.Streams{Stdin: neverEnding(t), Stdout: stdout, Stderr: stderr})
		s.Close()
		if diff := cmp.Diff(c.want, exit); diff != "" || !errors.Is(err, c.err) {
			t.Errorf("%v: %v %s", c.cause, err, diff)
		}
		want := []frame{request(t, wire.Request{Op: wire.OpExec, Exec: &wire.Exec{}}), {wire.KindSignal, "PIPE"}, {wire.KindSignal, "TERM"}}
		if diff := cmp.Diff(want, <-sent); diff != "" {
			t.Error(diff)
		}
	}
}

func neverEnding(t *testing.T) io.Reader {
	r, w := io.Pipe()
	t.Cleanup(func() { w.Close() })
	return r
}

// Input beyond the window waits for credit; and credit beyond reason is not
// taken.
func TestRunKeepsToTheWindow(t *testing.T) {
	here, there := pair(t)
	done := make(chan error, 1)
	go func() {
		_, err := wire.Run(context.Background(), here, wire.Exec{}, wire.Streams{Stdin: zeros{}})
		done <- err
	}()
	r := wire.NewReader(there)
	take := func(want int) {
		t.Helper()
		for got := 0; got < want; {
			kind, payload, err := r.Next()
			if err != nil {
				t.Fatal(err)
			}
			if kind == wire.KindStdin {
				got += len(payload)
			}
			if got > want {
				t.Fatalf("%d bytes came, %d were allowed", got, want)
			}
		}
	}
	take(wire.StdinWindow)
	for _, credit := range []string{"\x00\x00\x00\x07", "\xff\xff\xff\xff"} {
		if err := wire.WriteFrame(there, wire.KindCredit, []byte(credit)); err != nil {
			t.Fatal(err)
		}
		if credit[0] == 0 {
			take(7)
			continue
		}
		take(wire.StdinWindow)
	}
	if err := wire.WriteFrame(there, wire.KindResult, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

func TestRunPassesControlOn(t *testing.T) {
	here, there := pair(t)
	signals, sizes := make(chan string), make(chan wire.Terminal)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	var started atomic.Bool
	go func() {
		_, err := wire.Run(ctx, here, wire.Exec{}, wire.Streams{Started: func() { started.Store(true) }, Signals: signals, Resize: sizes})
		done <- err
	}()
	r := wire.NewReader(there)
	next := func() frame {
		t.Helper()
		kind, payload, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		return frame{kind, string(payload)}
	}
	got := []frame{next()}
	if !started.Load() {
		t.Error("the command runs, and a signal would still give the request up")
	}
	got = append(got, next())
	signals <- "INT"
	got = append(got, next())
	close(signals)
	sizes <- wire.Terminal{Rows: 2, Cols: 3}
	got = append(got, next())
	cancel()
	got = append(got, next())
	if err := wire.WriteFrame(there, wire.KindResult, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	want := []frame{
		request(t, wire.Request{Op: wire.OpExec, Exec: &wire.Exec{}}), {wire.KindStdinEnd, ""},
		{wire.KindSignal, "INT"}, {wire.KindResize, `{"rows":2,"cols":3}`}, {wire.KindSignal, "TERM"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
