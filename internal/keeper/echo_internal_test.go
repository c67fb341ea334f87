package keeper

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// printed is the data that a guest sends for a command's output.
func printed(t *testing.T, frames ...any) []byte {
	t.Helper()
	var b bytes.Buffer
	for i := 0; i < len(frames); i += 2 {
		if err := wire.WriteFrame(&b, frames[i].(wire.Kind), []byte(frames[i+1].(string))); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

// slowly gives at most n bytes at a time.
type slowly struct {
	io.Reader
	n int
}

func (s slowly) Read(p []byte) (int, error) { return s.Reader.Read(p[:min(len(p), s.n)]) }

func command(cycle int) wire.Request {
	return wire.Request{Op: wire.OpExec, Exec: &wire.Exec{Iteration: cycle}}
}

// relay passes a guest's data through a tap, and checks that none of it is
// changed.
func relay(t *testing.T, e *echo, cycle, size int, sent []byte) {
	t.Helper()
	answer, over := e.tap(command(cycle), slowly{bytes.NewReader(sent), size})
	got, err := io.ReadAll(answer)
	over()
	if err != nil || !bytes.Equal(got, sent) {
		t.Errorf("the client got something else: %v", err)
	}
}

// watched reads everything that is remembered as one watcher.
func watched(t *testing.T, e *echo, since int64) []Echo {
	t.Helper()
	here, there := net.Pipe()
	defer here.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		e.serve(there, since)
		there.Close()
	}()
	var pieces []Echo
	for frames := wire.NewReader(here); ; {
		kind, payload, err := frames.Next()
		var piece Echo
		if err != nil || kind != wire.KindStdout || json.Unmarshal(payload, &piece) != nil {
			t.Fatalf("%c %s: %v", kind, payload, err)
		}
		if piece.Now {
			break
		}
		pieces = append(pieces, piece)
	}
	here.Close()
	<-done
	return pieces
}

// However the bytes come, watchers see what was printed, by stream.
func TestEchoFollowsFrames(t *testing.T) {
	t.Parallel()
	sent := printed(t, wire.KindStarted, `{"pid":3}`, wire.KindStdout, "one\ntw", wire.KindStderr, "oops", wire.KindStdout, "", wire.KindCredit, "\x00\x00\x00\x01",
		wire.KindStdout, "o\n", wire.KindResult, `{"code":0}`)
	for size := 1; size <= len(sent); size++ {
		e := &echo{}
		relay(t, e, 7, size, sent)
		var out, err string
		ends := 0
		for _, piece := range watched(t, e, 0) {
			switch {
			case piece.Cycle != 7:
				t.Errorf("cycle %d", piece.Cycle)
			case piece.End:
				ends++
			case piece.Error:
				err += string(piece.Data)
			default:
				if mid := out != "" && !strings.HasSuffix(out, "\n"); mid != piece.Mid {
					t.Errorf("behind %q: mid is %t", out, piece.Mid)
				}
				out += string(piece.Data)
			}
		}
		if out != "one\ntwo\n" || err != "oops" || ends != 1 {
			t.Errorf("in steps of %d: %q, %q, %d ends", size, out, err, ends)
		}
	}
}

// A guest that sends no frames costs the echo, nothing else.
func TestEchoOfNonsense(t *testing.T) {
	t.Parallel()
	for _, sent := range []string{"o\xff\xff\xff\xffxxxx", "o", "o\x00\x00", strings.Repeat("o\x00\x00\x00\x00", 1000)} {
		e := &echo{}
		relay(t, e, 1, 3, []byte(sent))
		for _, piece := range watched(t, e, 0) {
			if len(piece.Data) > 0 {
				t.Errorf("%q: %+v", sent, piece)
			}
		}
	}
}

// A terminal's output is not watched.
func TestEchoLeavesTerminals(t *testing.T) {
	t.Parallel()
	e := &echo{}
	request := command(1)
	request.Exec.Terminal = &wire.Terminal{Rows: 1, Cols: 1}
	answer, over := e.tap(request, bytes.NewReader(printed(t, wire.KindStdout, "password\n")))
	if _, err := io.ReadAll(answer); err != nil {
		t.Fatal(err)
	}
	over()
	if pieces := watched(t, e, 0); len(pieces) > 0 {
		t.Errorf("%+v", pieces)
	}
}

// A command that prints more than is remembered is never held up, and its
// watcher learns exactly how many lines it has missed.
func TestEchoOverflow(t *testing.T) {
	t.Parallel()
	const total = 200_000
	e := &echo{}
	var b bytes.Buffer
	var line strings.Builder
	for i := range total {
		fmt.Fprintf(&line, "line %d\n", i)
		if line.Len() > 20_000 || i == total-1 {
			b.Write(printed(t, wire.KindStdout, line.String()))
			line.Reset()
		}
	}
	number, lines := e.since(0) // a watcher that has just begun
	relay(t, e, 1, 4096, b.Bytes())
	shown, lost := 0, int64(0)
	for {
		piece, found, after, _ := e.next(number, lines)
		if found < 0 {
			break
		}
		number, lines = found+1, after
		data := piece.Data
		lost += piece.Lost
		if piece.Lost > 0 && piece.Mid {
			_, data, _ = bytes.Cut(data, []byte{'\n'})
		}
		shown += bytes.Count(data, []byte{'\n'})
	}
	if lost == 0 || int64(shown)+lost != total {
		t.Errorf("%d shown, %d lost, of %d", shown, lost, total)
	}
	if len(e.ring) != echoBytes || len(e.pieces) > echoPieces {
		t.Errorf("%d bytes, %d pieces", len(e.ring), len(e.pieces))
	}
	// Tiny pieces are bounded too.
	for range 3 * echoPieces {
		e.add(Echo{Cycle: 2}, []byte("x"))
	}
	if len(e.pieces) > echoPieces || len(e.ring) != echoBytes {
		t.Errorf("%d bytes, %d pieces", len(e.ring), len(e.pieces))
	}
}

// A watcher that never reads holds up neither a command nor the keeper's end
// for long, and more than a few are refused.
func TestEchoWatchers(t *testing.T) {
	t.Parallel()
	e := &echo{}
	e.add(Echo{Cycle: 1}, []byte("x\n"))
	var conns []net.Conn
	for range echoWatchers {
		here, there := net.Pipe()
		conns = append(conns, here)
		go func() {
			e.serve(there, 0)
			there.Close()
		}()
		// Its first bytes show that it is served; the rest is never read.
		if _, err := here.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	here, there := net.Pipe()
	go e.serve(there, 0)
	if kind, _, err := wire.NewReader(here).Next(); err != nil || kind != wire.KindError {
		t.Errorf("one too many: %c, %v", kind, err)
	}
	relay(t, e, 2, 4096, printed(t, wire.KindStdout, strings.Repeat("more\n", 10_000), wire.KindResult, "{}"))
	e.finish() // returns although no one reads
	for _, conn := range conns {
		conn.Close()
	}
}
