package outpost

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// errReset ends a stream that the other end gave up.
var errReset = errors.New("the other end gave the stream up")

// Stream is one two-way stream of a link. It implements net.Conn; its addresses
// belong to no network.
type Stream struct {
	link *Link
	id   uint32

	mu      sync.Mutex
	changed sync.Cond
	queue   queue // received, and not read yet
	unsaid  int   // bytes read whose credit was not given back yet
	credit  int   // bytes that may be sent
	eof     bool  // nothing more comes
	shut    bool  // nothing more goes
	closed  bool
	err     error
	reads   deadline
	writes  deadline
}

// deadline is one of net.Conn's.
type deadline struct {
	at    time.Time
	timer *time.Timer
}

func (d *deadline) passed() bool { return !d.at.IsZero() && !time.Now().Before(d.at) }

func newStream(l *Link, id uint32) *Stream {
	s := &Stream{link: l, id: id, credit: window}
	s.changed.L = &s.mu
	return s
}

// take puts received data into the buffer.
func (s *Stream) take(r io.Reader, n int) error {
	p := newPiece(n)
	if _, err := io.ReadFull(r, p.data[:n]); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.err != nil {
		return nil
	}
	if s.eof || s.queue.held+s.unsaid+n > window {
		return errProtocol
	}
	s.queue.add(p)
	s.changed.Broadcast()
	return nil
}

// credited lets more be sent.
func (s *Stream) credited(more uint32) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if more > window || s.credit+int(more) > window {
		return errProtocol
	}
	s.credit += int(more)
	s.changed.Broadcast()
	return nil
}

func (s *Stream) ended() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.eof = true
	s.changed.Broadcast()
}

// over ends the stream with an error; what was received before can be read.
func (s *Stream) over(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
	s.changed.Broadcast()
}

// Read implements net.Conn.
func (s *Stream) Read(p []byte) (int, error) {
	s.mu.Lock()
	for s.queue.held == 0 && !s.eof && s.err == nil && !s.closed && !s.reads.passed() && len(p) > 0 {
		s.changed.Wait()
	}
	switch {
	case s.closed:
		defer s.mu.Unlock()
		return 0, net.ErrClosed
	case s.reads.passed():
		defer s.mu.Unlock()
		return 0, os.ErrDeadlineExceeded
	case s.queue.held > 0:
	case s.eof:
		defer s.mu.Unlock()
		return 0, io.EOF
	case s.err != nil:
		defer s.mu.Unlock()
		return 0, s.err
	}
	n := s.queue.read(p)
	s.unsaid += n
	give := 0
	if s.unsaid >= window/4 && !s.eof {
		give, s.unsaid = s.unsaid, 0
	}
	s.mu.Unlock()
	if give > 0 {
		// A failure here fails the next Read too.
		_ = s.link.send(frameCredit, s.id, binary.BigEndian.AppendUint32(nil, uint32(give)))
	}
	return n, nil
}

// Write implements net.Conn.
func (s *Stream) Write(p []byte) (written int, err error) {
	for len(p) > 0 {
		n, err := s.reserve(len(p))
		if err != nil {
			return written, err
		}
		if err := s.link.send(frameData, s.id, p[:n]); err != nil {
			return written, err
		}
		written, p = written+n, p[n:]
	}
	return written, nil
}

// reserve waits until data may be sent, and takes the credit for it.
func (s *Stream) reserve(most int) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.credit == 0 && s.err == nil && !s.closed && !s.shut && !s.writes.passed() {
		s.changed.Wait()
	}
	switch {
	case s.closed, s.shut:
		return 0, net.ErrClosed
	case s.err != nil:
		return 0, s.err
	case s.writes.passed():
		return 0, os.ErrDeadlineExceeded
	}
	n := min(most, s.credit, maxFrame)
	s.credit -= n
	return n, nil
}

// CloseWrite tells the other end that nothing more will come.
func (s *Stream) CloseWrite() error {
	s.mu.Lock()
	if s.shut || s.closed || s.err != nil {
		defer s.mu.Unlock()
		return s.err
	}
	s.shut = true
	s.mu.Unlock()
	return s.link.send(frameEnd, s.id, nil)
}

// Close implements net.Conn. Data that the other end still sends is dropped.
func (s *Stream) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.queue = queue{}
	failed, shut, eof := s.err != nil, s.shut, s.eof
	s.changed.Broadcast()
	s.mu.Unlock()
	s.link.forget(s.id)
	if failed || shut && eof {
		return nil
	}
	var err error
	if s.link.serve != nil && !shut {
		err = s.link.send(frameEnd, s.id, nil) // the answer was whole
	}
	return errors.Join(err, s.link.send(frameReset, s.id, nil))
}

// Abort ends the stream so that the other end does not take what it got for everything.
func (s *Stream) Abort() {
	s.over(errReset)
	s.link.forget(s.id)
	_ = s.link.send(frameReset, s.id, nil) // a link that has ended says the same
}

// LocalAddr implements net.Conn.
func (s *Stream) LocalAddr() net.Addr { return address{} }

// RemoteAddr implements net.Conn.
func (s *Stream) RemoteAddr() net.Addr { return address{} }

// address belongs to no network.
type address struct{}

func (address) Network() string { return "outpost" }
func (address) String() string  { return "outpost" }

// SetDeadline implements net.Conn.
func (s *Stream) SetDeadline(t time.Time) error {
	return errors.Join(s.SetReadDeadline(t), s.SetWriteDeadline(t))
}

// SetReadDeadline implements net.Conn.
func (s *Stream) SetReadDeadline(t time.Time) error { return s.set(&s.reads, t) }

// SetWriteDeadline implements net.Conn.
func (s *Stream) SetWriteDeadline(t time.Time) error { return s.set(&s.writes, t) }

func (s *Stream) set(d *deadline, t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	if d.at = t; !t.IsZero() {
		d.timer = time.AfterFunc(time.Until(t), func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.changed.Broadcast()
		})
	}
	s.changed.Broadcast()
	return nil
}
