package inject

import (
	"errors"
	"io"
	"net"
	"net/http"
	"sync"

	"github.com/litterbox-sandbox/litterbox/internal/secret"
	"github.com/litterbox-sandbox/litterbox/internal/secret/replace"
)

// errFrames ends a WebSocket that is not one.
var errFrames = errors.New("it is not a WebSocket that can be inspected")

// switched has the messages of a WebSocket searched, both ways.
func (x *exchange) switched(response *http.Response) error {
	conn, ok := response.Body.(io.ReadWriteCloser)
	if !ok || response.Header.Get("Sec-Websocket-Extensions") != "" {
		return x.unreadable("a WebSocket whose messages are encoded")
	}
	socket := &socket{conn: conn, x: x}
	var in, out []*replace.Table
	for _, held := range x.held {
		socket.held = append(socket.held, held.Again())
		in = append(in, held.Even())
		if table := held.Out(nil); held.Replaces(secret.Body) && table.SameLength() {
			out = append(out, table)
		}
	}
	socket.in, socket.out = newFrames(in, nil), newFrames(out, x.state.Marks())
	response.Body = socket
	return nil
}

// watchSocket is switched for a host that gets no value.
func (x *exchange) watchSocket(response *http.Response) {
	conn, ok := response.Body.(io.ReadWriteCloser)
	if !ok || response.Header.Get("Sec-Websocket-Extensions") != "" {
		return // a placeholder in there is not seen, and stays one
	}
	response.Body = &socket{conn: conn, x: x, out: newFrames(nil, x.state.Marks())}
}

// socket is a connection after the switch to WebSocket.
type socket struct {
	conn    io.ReadWriteCloser
	x       *exchange
	held    []*secret.Held
	in, out *frames // in is nil where nothing is replaced

	mu     sync.Mutex // guards what Close releases
	closed bool
	ready  []byte
	err    error
}

// Read implements io.Reader: what the host says.
func (s *socket) Read(p []byte) (int, error) {
	if s.in == nil {
		return s.conn.Read(p)
	}
	for len(s.ready) == 0 {
		if s.err != nil {
			return 0, s.err
		}
		piece := make([]byte, readSize)
		n, err := s.conn.Read(piece)
		s.mu.Lock()
		if s.closed {
			s.mu.Unlock()
			return 0, net.ErrClosed
		}
		ready, _, frameErr := s.in.next(piece[:n])
		s.mu.Unlock()
		s.ready = ready
		if s.err = err; frameErr != nil {
			s.err = frameErr
		}
	}
	n := copy(p, s.ready)
	s.ready = s.ready[n:]
	return n, nil
}

// Write implements io.Writer: what the program says.
func (s *socket) Write(p []byte) (int, error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return 0, net.ErrClosed
	}
	ready, ids, err := s.out.next(p)
	s.mu.Unlock()
	for _, id := range ids {
		if name := s.x.foreignID(id); name != "" {
			return 0, s.x.refusal.refuse(s.x.elsewhere(name))
		}
	}
	if err != nil {
		return 0, err
	}
	if _, err := s.conn.Write(ready); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close implements io.Closer.
func (s *socket) Close() error {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		for _, held := range s.held {
			held.Release()
		}
	}
	s.mu.Unlock()
	return s.conn.Close()
}
