package keeper

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// OpEcho is the keeper's own operation: the output of commands, as KindStdout
// frames of JSON of Echo, until the client goes or the sandbox stops. It begins
// with what is remembered of the time after Since.
const OpEcho wire.Op = "keeper.echo"

// How much of commands' output is remembered, and how many may watch it. A
// watcher reads from that memory, so a slow one misses what is overwritten, and
// no command ever waits for it.
const (
	echoBytes    = 256 << 10
	echoPieces   = 4 << 10
	echoWatchers = 32
)

// Echo is a piece of what a command printed.
type Echo struct {
	At    int64  `json:"at_ns"` // Unix time; grows from piece to piece
	Cycle int    `json:"cycle"`
	Error bool   `json:"error,omitempty"` // from standard error
	Mid   bool   `json:"mid,omitempty"`   // it does not begin a line
	Data  []byte `json:"data,omitempty"`
	End   bool   `json:"end,omitempty"`  // the command prints nothing more
	Lost  int64  `json:"lost,omitempty"` // lines that this watcher has missed before it
	Now   bool   `json:"now,omitempty"`  // nothing else is remembered: the rest is new
}

// echo remembers the latest output of all commands of the sandbox.
type echo struct {
	mu       sync.Mutex
	ring     []byte      // echoBytes, made when the first command prints
	written  int64       // bytes ever
	pieces   []echoPiece // oldest first
	dropped  int         // pieces ever taken from the front
	lines    int64       // line ends ever
	at       int64       // of the newest piece
	watchers int
	commands int           // that may still print
	changed  chan struct{} // closed at the next change
	over     bool          // nothing more comes
}

// echoPiece is an [Echo] whose data lies in the ring.
type echoPiece struct {
	Echo
	from, size int64
	lines      int64 // line ends before it
}

// add remembers a piece. The data of one is never longer than the ring.
func (e *echo) add(piece Echo, data []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ring == nil {
		e.ring = make([]byte, echoBytes)
	}
	e.at = max(e.at+1, time.Now().UnixNano())
	piece.At = e.at
	e.pieces = append(e.pieces, echoPiece{Echo: piece, from: e.written, size: int64(len(data)), lines: e.lines})
	for rest := data; len(rest) > 0; {
		n := copy(e.ring[e.written%echoBytes:], rest)
		e.written += int64(n)
		rest = rest[n:]
	}
	e.lines += int64(bytes.Count(data, []byte{'\n'}))
	old := max(0, len(e.pieces)-echoPieces)
	for old < len(e.pieces) && e.pieces[old].from < e.written-echoBytes {
		old++
	}
	e.pieces = e.pieces[old:]
	e.dropped += old
	e.wake()
}

// wake tells the waiters that something has changed. The caller holds mu.
func (e *echo) wake() {
	if e.changed != nil {
		close(e.changed)
		e.changed = nil
	}
}

// echoPatience is how long an ending keeper waits for commands to end and for
// watchers to read their output. The client that asked for the end does not
// wait for that.
const echoPatience = 500 * time.Millisecond

// finish lets watchers read the rest.
func (e *echo) finish() {
	limit := time.NewTimer(echoPatience)
	defer limit.Stop()
	for {
		e.mu.Lock()
		if e.commands == 0 && !e.over {
			e.over = true
			e.wake()
		}
		idle := e.watchers == 0
		if e.changed == nil {
			e.changed = make(chan struct{})
		}
		changed := e.changed
		e.mu.Unlock()
		if idle {
			return
		}
		select {
		case <-changed:
		case <-limit.C:
			return
		}
	}
}

// next returns the piece with that number, or the oldest after it. When there
// is none, found is negative, and wait closes when there may be one; it is nil
// when none will come. lines is how many line ends came before the watcher's
// position.
func (e *echo) next(number int, lines int64) (piece Echo, found int, after int64, wait <-chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	at := max(0, number-e.dropped)
	if at >= len(e.pieces) {
		if e.changed == nil && !e.over {
			e.changed = make(chan struct{})
		}
		return Echo{}, -1, lines, e.changed
	}
	kept := e.pieces[at]
	piece = kept.Echo
	if e.dropped > number {
		piece.Lost = max(1, kept.lines-lines) // perhaps part of a line without an end yet
		if kept.Mid {
			piece.Lost++ // whose rest is useless
		}
	}
	piece.Data = make([]byte, kept.size)
	for n := int64(0); n < kept.size; {
		n += int64(copy(piece.Data[n:], e.ring[(kept.from+n)%echoBytes:]))
	}
	return piece, e.dropped + at, kept.lines + int64(bytes.Count(piece.Data, []byte{'\n'})), nil
}

// since returns the number of the first piece after a moment, and the line ends
// before it.
func (e *echo) since(at int64) (number int, lines int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i, piece := range e.pieces {
		if piece.At > at {
			return e.dropped + i, piece.lines
		}
	}
	return e.dropped + len(e.pieces), e.lines
}

// serve streams to one watcher until it goes away or the sandbox stops.
func (e *echo) serve(conn net.Conn, since int64) {
	e.mu.Lock()
	full := e.watchers >= echoWatchers
	if !full {
		e.watchers++
	}
	e.mu.Unlock()
	if full {
		_ = wire.Fail(conn, fault.New(fault.Conflict, "cannot watch: %d watch this sandbox already", echoWatchers))
		return
	}
	defer func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.watchers--
		e.wake()
	}()
	gone := make(chan struct{})
	go func() {
		// The client says nothing more; its end is all there is to read.
		_, _ = conn.Read(make([]byte, 1))
		close(gone)
	}()
	told := false
	for number, lines := e.since(since); ; {
		piece, found, after, wait := e.next(number, lines)
		if found < 0 {
			if !told && wire.WriteJSON(conn, wire.KindStdout, Echo{Now: true}) != nil || wait == nil {
				return
			}
			told = true
			select {
			case <-wait:
				continue
			case <-gone:
			}
			return
		}
		if wire.WriteJSON(conn, wire.KindStdout, piece) != nil {
			return
		}
		number, lines = found+1, after
	}
}

// tap returns what passes from a command to its client, and remembers its
// output on the way; over is called when nothing more passes. Terminals are not
// remembered: a human sits there, and screens are not lines.
func (e *echo) tap(request wire.Request, stream io.Reader) (passing io.Reader, over func()) {
	if request.Op != wire.OpExec || request.Exec == nil || request.Exec.Terminal != nil {
		return stream, func() {}
	}
	t := &tapped{Reader: stream, echo: e, cycle: request.Exec.Iteration}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.commands++
	return t, func() {
		t.end()
		e.mu.Lock()
		defer e.mu.Unlock()
		e.commands--
		e.wake()
	}
}

// tapped follows the frames that a guest sends. The guest is not trusted:
// anything but a frame ends the echo, and is the client's to refuse.
type tapped struct {
	io.Reader
	echo  *echo
	cycle int

	header []byte // of a frame, as far as it has arrived
	kind   wire.Kind
	left   uint32 // of the frame's payload
	mid    [2]bool
	over   bool
}

func (t *tapped) Read(p []byte) (int, error) {
	n, err := t.Reader.Read(p)
	t.see(p[:n])
	return n, err
}

// frameHeader is a kind and a length.
const frameHeader = 5

func (t *tapped) see(data []byte) {
	for len(data) > 0 && !t.over {
		if t.left == 0 {
			n := min(frameHeader-len(t.header), len(data))
			t.header = append(t.header, data[:n]...)
			data = data[n:]
			if len(t.header) < frameHeader {
				return
			}
			t.kind, t.left = wire.Kind(t.header[0]), binary.BigEndian.Uint32(t.header[1:])
			t.header = t.header[:0]
			if t.left > wire.MaxFrame || t.kind == wire.KindResult || t.kind == wire.KindError {
				t.end()
			}
			continue
		}
		n := min(int(t.left), len(data))
		t.left -= uint32(n)
		if t.kind == wire.KindStdout || t.kind == wire.KindStderr {
			t.pass(data[:n])
		}
		data = data[n:]
	}
}

// pieceBytes bounds a piece, so that as JSON it fits a frame.
const pieceBytes = 32 << 10

func (t *tapped) pass(data []byte) {
	stream := 0
	if t.kind == wire.KindStderr {
		stream = 1
	}
	for len(data) > 0 {
		piece := data[:min(len(data), pieceBytes)]
		t.echo.add(Echo{Cycle: t.cycle, Error: stream == 1, Mid: t.mid[stream]}, piece)
		t.mid[stream] = piece[len(piece)-1] != '\n'
		data = data[len(piece):]
	}
}

func (t *tapped) end() {
	if !t.over {
		t.over = true
		t.echo.add(Echo{Cycle: t.cycle, End: true}, nil)
	}
}
