package outpost

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// Bounds of one link. A frame is short so that a transfer does not delay typed
// input; the windows bound how much unread data an end must hold.
const (
	maxFrame   = 32 << 10
	window     = 1 << 20 // bytes of one stream that may be on their way
	maxStreams = 128
	header     = 1 + 4 + 4 // kind, stream, length
)

// The kinds of frames.
const (
	frameOpen   = 'o' // a new stream; only the end that dialled opens one
	frameData   = 'd'
	frameEnd    = 'e' // nothing more comes from this side
	frameReset  = 'r' // the stream is over
	frameCredit = 'c' // four bytes: how many more may be sent
	framePing   = 'p'
	framePong   = 'q'
)

// Keepalive: an end that has heard nothing for a while asks, and considers itself
// alone without an answer.
const (
	askAfter   = 10 * time.Second
	aloneAfter = 45 * time.Second
)

// errProtocol ends a link with something other than an outpost, or with a
// hostile one.
var errProtocol = errors.New("the other end does not keep to the protocol")

// Link is one byte stream that carries others. It is safe for concurrent use.
type Link struct {
	conn  io.ReadWriteCloser
	serve func(*Stream) // of the end that answers
	heard atomic.Int64  // when data last came, ns
	peer  atomic.Int64  // the version of the other end, once it is known

	writing sync.Mutex
	frame   []byte // guarded by writing
	said    bool   // the greeting was sent; guarded by writing
	control chan [2]uint32
	running sync.WaitGroup

	mu      sync.Mutex
	streams map[uint32]*Stream
	next    uint32
	err     error
	gone    chan struct{}
}

// Dialled makes the end of a link that opens streams. It owns conn.
func Dialled(conn io.ReadWriteCloser) *Link { return begin(conn, nil) }

// Accepted makes the end that answers: handle runs on a goroutine for each
// stream, which is closed when it returns.
func Accepted(conn io.ReadWriteCloser, handle func(*Stream)) *Link { return begin(conn, handle) }

func begin(conn io.ReadWriteCloser, handle func(*Stream)) *Link {
	l := &Link{conn: conn, serve: handle, streams: map[uint32]*Stream{}, control: make(chan [2]uint32, 2*maxStreams), gone: make(chan struct{})}
	l.heard.Store(time.Now().UnixNano())
	go l.read()
	go l.answer()
	go l.watch()
	return l
}

// Wait returns when the link has ended and every handler has returned, and says
// why it ended.
func (l *Link) Wait() error {
	<-l.gone
	l.running.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Ended reports whether the link has ended.
func (l *Link) Ended() bool {
	select {
	case <-l.gone:
		return true
	default:
		return false
	}
}

// Close ends the link and all its streams.
func (l *Link) Close() error {
	l.fail(errors.New("the connection was closed"))
	return nil
}

// Streams returns how many are open.
func (l *Link) Streams() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.streams)
}

// Heard returns when data last came.
func (l *Link) Heard() time.Time { return time.Unix(0, l.heard.Load()) }

// Ping asks the other end for a sign of life, which [Link.Heard] shows. It is left out
// when too many frames wait.
func (l *Link) Ping() {
	select {
	case l.control <- [2]uint32{framePing, 0}:
	default:
	}
}

// fail ends the link; the first reason counts.
func (l *Link) fail(err error) {
	l.mu.Lock()
	if l.err != nil {
		l.mu.Unlock()
		return
	}
	l.err = err
	streams := l.streams
	l.streams = map[uint32]*Stream{}
	close(l.gone)
	l.mu.Unlock()
	_ = l.conn.Close() // it has ended, and the reason is known
	for _, s := range streams {
		s.over(err)
	}
}

// Open opens a stream. It waits for no answer.
func (l *Link) Open() (*Stream, error) {
	l.mu.Lock()
	if l.err != nil {
		defer l.mu.Unlock()
		if fault.KindOf(l.err) == fault.Unsupported {
			return nil, l.err // another version: another attempt changes nothing
		}
		return nil, fault.Wrap(fault.Unavailable, l.err, "cannot open a stream to the outpost")
	}
	if len(l.streams) >= maxStreams {
		l.mu.Unlock()
		return nil, fault.New(fault.Unavailable, "cannot open a stream to the outpost: %d are open", maxStreams)
	}
	l.next++
	s := newStream(l, l.next)
	l.streams[s.id] = s
	l.mu.Unlock()
	if err := l.send(frameOpen, s.id, nil); err != nil {
		return nil, err
	}
	return s, nil
}

// send writes one frame with one Write.
func (l *Link) send(kind byte, id uint32, payload []byte) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.frame = append(l.hello(l.frame[:0]), kind)
	l.frame = binary.BigEndian.AppendUint32(l.frame, id)
	l.frame = binary.BigEndian.AppendUint32(l.frame, uint32(len(payload)))
	l.frame = append(l.frame, payload...)
	return l.put(l.frame)
}

// hello puts the greeting before the first data sent.
func (l *Link) hello(p []byte) []byte {
	if !l.said {
		l.said = true
		p = append(p, greeting()...)
	}
	return p
}

// put is called with writing held.
func (l *Link) put(p []byte) error {
	if len(p) == 0 {
		return nil
	}
	if _, err := l.conn.Write(p); err != nil {
		err = fault.Wrap(fault.Unavailable, err, "cannot write to the outpost's connection")
		l.fail(err) // at once: the next stream needs another link
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.err // why it ended, if that was already known
	}
	return nil
}

// answer sends the reader's frames: the reader itself must not wait for an end
// that does not read.
func (l *Link) answer() {
	l.writing.Lock()
	err := l.put(l.hello(nil))
	l.writing.Unlock()
	for err == nil {
		select {
		case <-l.gone:
			return
		case c := <-l.control:
			err = l.send(byte(c[0]), c[1], nil)
		}
	}
}

// watch ends a link whose other end is silently gone. It writes nothing itself:
// a write may be what is stuck.
func (l *Link) watch() {
	tick := time.NewTicker(askAfter / 2)
	defer tick.Stop()
	for {
		select {
		case <-l.gone:
			return
		case <-tick.C:
			switch silent := time.Since(time.Unix(0, l.heard.Load())); {
			case silent > aloneAfter: // also after a sleep of this machine
				l.fail(errors.New("the other end does not answer"))
			case silent > askAfter:
				l.later(framePing, 0)
			}
		}
	}
}

// later has answer send a frame without a payload. Too many waiting frames mean
// a hostile end.
func (l *Link) later(kind byte, id uint32) {
	select {
	case l.control <- [2]uint32{uint32(kind), id}:
	default:
		l.fail(errProtocol)
	}
}

func (l *Link) read() {
	r := bufio.NewReaderSize(l.conn, 64<<10)
	err := l.greeted(r)
	for err == nil {
		err = l.one(r)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("the connection ended")
	}
	l.fail(err)
}

// one handles one frame.
func (l *Link) one(r *bufio.Reader) error {
	var head [header]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	l.heard.Store(time.Now().UnixNano())
	kind, id, length := head[0], binary.BigEndian.Uint32(head[1:]), binary.BigEndian.Uint32(head[5:])
	most := uint32(0)
	switch kind {
	case frameData:
		most = maxFrame
	case frameCredit:
		most = 4
	}
	if length > most || kind == frameCredit && length != 4 {
		return errProtocol
	}
	s := l.stream(id)
	switch kind {
	case frameOpen:
		return l.opened(id)
	case frameData:
		if s == nil { // over on this side
			_, err := r.Discard(int(length))
			return err
		}
		return s.take(r, int(length))
	case frameCredit:
		var more [4]byte
		if _, err := io.ReadFull(r, more[:]); err != nil {
			return err
		}
		if s != nil {
			return s.credited(binary.BigEndian.Uint32(more[:]))
		}
	case frameEnd:
		if s != nil {
			s.ended()
		}
	case frameReset:
		if s != nil {
			l.forget(id)
			s.over(errReset)
		}
	case framePing:
		l.later(framePong, 0)
	case framePong:
	default:
		return errProtocol
	}
	return nil
}

func (l *Link) stream(id uint32) *Stream {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.streams[id]
}

func (l *Link) forget(id uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.streams, id)
}

// opened answers a new stream.
func (l *Link) opened(id uint32) error {
	l.mu.Lock()
	// Two opened at the same time may come in either order.
	if l.serve == nil || l.streams[id] != nil {
		l.mu.Unlock()
		return errProtocol
	}
	if len(l.streams) >= maxStreams || l.err != nil {
		l.mu.Unlock()
		l.later(frameReset, id)
		return nil
	}
	s := newStream(l, id)
	l.streams[id] = s
	l.running.Add(1)
	l.mu.Unlock()
	go func() {
		defer l.running.Done()
		defer s.Close()
		l.serve(s)
	}()
	return nil
}

// Versions of the requests. The frames are the same in all of them. An end speaks
// with any other whose oldest accepted version is not above its own; each keeps
// what the previous version needs.
const (
	Version = 1
	Oldest  = 1
)

func greeting() string { return fmt.Sprintf("litterbox-outpost %d %d\n", Version, Oldest) }

// greeted reads the greeting of the other end.
func (l *Link) greeted(r *bufio.Reader) error {
	line := make([]byte, 0, 64)
	for len(line) < cap(line) {
		b, err := r.ReadByte()
		if err != nil {
			return err
		}
		if line = append(line, b); b == '\n' {
			break
		}
	}
	var version, oldest int
	if n, err := fmt.Sscanf(string(line), "litterbox-outpost %d %d\n", &version, &oldest); err != nil || n != 2 || version < 1 || oldest < 1 {
		return errProtocol
	}
	if version < Oldest || oldest > Version {
		return fault.New(fault.Unsupported, "cannot speak with the outpost: it is of version %d, and this litterbox of version %d", version, Version).
			WithHint("use a litterbox of the same release on both machines")
	}
	l.peer.Store(int64(version))
	return nil
}
