package fake

import (
	"bytes"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// pipe is a connection in memory. Unlike net.Pipe it accepts writes before the
// other end reads: both ends of an SSH connection begin by writing.
func pipe() (a, b *end) {
	left, right := newQueue(), newQueue()
	return &end{in: left, out: right}, &end{in: right, out: left}
}

type end struct{ in, out *queue }

func (e *end) Read(p []byte) (int, error)  { return e.in.read(p) }
func (e *end) Write(p []byte) (int, error) { return e.out.write(p) }

// Close ends both directions, as closing a socket does.
func (e *end) Close() error {
	e.in.close()
	e.out.close()
	return nil
}

func (*end) LocalAddr() net.Addr  { return address{} }
func (*end) RemoteAddr() net.Addr { return address{} }

// Deadlines do not exist here; the wire does without.
func (*end) SetDeadline(time.Time) error      { return os.ErrNoDeadline }
func (*end) SetReadDeadline(time.Time) error  { return os.ErrNoDeadline }
func (*end) SetWriteDeadline(time.Time) error { return os.ErrNoDeadline }

type address struct{}

func (address) Network() string { return "memory" }
func (address) String() string  { return "memory" }

// queue is one direction.
type queue struct {
	mu     sync.Mutex
	change *sync.Cond
	data   bytes.Buffer
	closed bool
}

func newQueue() *queue {
	q := &queue{}
	q.change = sync.NewCond(&q.mu)
	return q
}

func (q *queue) read(p []byte) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.data.Len() == 0 && !q.closed {
		q.change.Wait()
	}
	if q.data.Len() == 0 {
		return 0, io.EOF
	}
	return q.data.Read(p)
}

func (q *queue) write(p []byte) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return 0, io.ErrClosedPipe
	}
	defer q.change.Broadcast()
	return q.data.Write(p)
}

func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.change.Broadcast()
}

func (q *queue) isClosed() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed
}
