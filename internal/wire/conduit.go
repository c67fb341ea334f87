package wire

import (
	"io"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

// Conduit carries one TCP connection on a channel of a link, where host and
// guest share no kernel: bytes, an end of each direction, a reset, deadlines.
// One goroutine at a time reads; any number write, close and reset.
//
// The window of SSH is two megabytes per channel, too much to promise to a
// thousand of them. So each end announces how much it takes (credit), reads the
// channel at once, and resets a conduit whose other end sends more. The end of a
// direction comes with the number of its bytes, as a request: data that SSH
// sends after its own end of data is kept without a reader.
type Conduit struct {
	channel ssh.Channel
	memory  *memory
	gone    chan struct{}

	mu       sync.Mutex
	readable *sync.Cond // of mu
	writable *sync.Cond // of mu
	closed   bool       // by this end
	broken   error      // why nothing more comes or goes; nil while it does

	queue    []piece // received and not yet read
	held     int     // bytes in queue
	received uint64
	total    uint64 // how many bytes the other end has sent in all, once ended
	ended    bool
	window   int       // how much the other end may have under way
	allowed  int       // how much of it has not arrived
	eaten    int       // read since the last credit
	credited time.Time // when that was
	reading  deadline

	writing  sync.Mutex // one writes to the channel at a time; taken before mu
	credit   int        // how much the other end takes
	sent     uint64
	finished bool // the other end was told how many bytes there are
	limit    deadline
}

// The windows of a conduit, in bytes. A window grows while its reader keeps
// pace and the link has memory for it.
const (
	firstWindow = 32 << 10
	mostWindow  = 1 << 20
	// growWithin is the time within which half of a window must be read for it to grow.
	growWithin = 250 * time.Millisecond
)

// pieceSize is how much is kept together: as much as fits into one packet.
const pieceSize = 32 << 10

// piece is received data: data[from:to].
type piece struct {
	data     *[pieceSize]byte
	from, to int
}

var pieces = sync.Pool{New: func() any { return new([pieceSize]byte) }}

// newConduit uses an open channel, whose requests go to listen. foul ends the
// link when the other end breaks the protocol.
func newConduit(channel ssh.Channel, memory *memory, foul func()) *Conduit {
	c := &Conduit{
		channel: channel, memory: memory, gone: make(chan struct{}),
		window: firstWindow, allowed: firstWindow, credit: firstWindow, credited: time.Now(),
	}
	c.readable, c.writable = sync.NewCond(&c.mu), sync.NewCond(&c.mu)
	go c.drain(foul)
	return c
}

// Gone is closed when both ends have closed the conduit, or its link has ended.
func (c *Conduit) Gone() <-chan struct{} { return c.gone }

// Read waits for bytes. After all of them it is io.EOF or ErrReset.
func (c *Conduit) Read(p []byte) (int, error) {
	first, err := c.next()
	if err != nil || len(p) == 0 {
		return 0, err
	}
	n := copy(p, first)
	c.took(n)
	return n, nil
}

// Pass waits for bytes and writes at most limit of them to w, without a buffer
// of its own.
func (c *Conduit) Pass(w io.Writer, limit int64) (int64, error) {
	first, err := c.next()
	if err != nil {
		return 0, err
	}
	n, err := w.Write(first[:min(int64(len(first)), limit)])
	c.took(n)
	return int64(n), err
}

// next waits for bytes. They stay as they are until they are taken.
func (c *Conduit) next() ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		switch {
		case c.closed:
			return nil, net.ErrClosed
		case c.reading.over():
			return nil, os.ErrDeadlineExceeded
		case len(c.queue) > 0:
			first := c.queue[0]
			return first.data[first.from:first.to], nil
		case c.ended && c.received == c.total:
			return nil, io.EOF
		case c.broken != nil:
			return nil, c.broken
		}
		c.readable.Wait()
	}
}

// took removes n bytes that next has returned, and lets the other end send more.
func (c *Conduit) took(n int) {
	c.mu.Lock()
	if c.closed || n == 0 {
		c.mu.Unlock()
		return
	}
	if first := &c.queue[0]; first.from+n < first.to {
		first.from += n
	} else {
		pieces.Put(first.data)
		c.queue[0].data = nil
		if c.queue = c.queue[1:]; len(c.queue) == 0 {
			c.queue = nil
		}
	}
	c.held -= n
	c.eaten += n
	more := 0
	if c.eaten >= c.window/2 && !c.ended && c.broken == nil {
		more, c.eaten = c.eaten, 0
		now := time.Now()
		if c.held <= c.window/4 && c.window < mostWindow && now.Sub(c.credited) < growWithin && c.memory.take(c.window) {
			more += c.window
			c.window *= 2
		}
		c.credited = now
		c.allowed += more
	}
	c.mu.Unlock()
	if more > 0 {
		_, _ = c.channel.SendRequest(creditRequest, false, ssh.Marshal(creditMessage{uint32(more)})) // the end shows elsewhere
	}
}

// Write sends p as fast as the other end takes it.
func (c *Conduit) Write(p []byte) (written int, err error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	for len(p) > 0 {
		n, err := c.reserve(len(p))
		if err != nil {
			return written, err
		}
		if _, err := c.channel.Write(p[:n]); err != nil {
			return written, ErrReset
		}
		written += n
		p = p[n:]
	}
	return written, nil
}

// reserve waits until some bytes may be sent, and counts them.
func (c *Conduit) reserve(want int) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		switch {
		case c.closed || c.finished:
			return 0, net.ErrClosed
		case c.broken != nil:
			return 0, c.broken
		case c.limit.over():
			return 0, os.ErrDeadlineExceeded
		case c.credit > 0:
			n := min(want, c.credit, pieceSize)
			c.credit -= n
			c.sent += uint64(n)
			return n, nil
		}
		c.writable.Wait()
	}
}

// CloseWrite tells the other end that nothing more will come.
func (c *Conduit) CloseWrite() error {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.mu.Lock()
	switch {
	case c.closed:
		c.mu.Unlock()
		return net.ErrClosed
	case c.broken != nil:
		c.mu.Unlock()
		return c.broken
	}
	c.mu.Unlock()
	return c.finish()
}

// finish tells the other end how many bytes there are. Its caller holds writing.
func (c *Conduit) finish() error {
	c.mu.Lock()
	already, sent := c.finished, c.sent
	c.finished = true
	c.mu.Unlock()
	if already {
		return nil
	}
	_, err := c.channel.SendRequest(endRequest, false, ssh.Marshal(endMessage{sent}))
	return err
}

// Close ends the conduit in an orderly way: written data arrives. It does not
// wait for the link.
func (c *Conduit) Close() error {
	c.shut(func() {
		c.writing.Lock()
		defer c.writing.Unlock()
		_ = c.finish() // the channel is closed in any case
	})
	return nil
}

// Reset breaks the conduit off: the other end sees a reset. It does not wait for
// the link, so that no program inside can hold up its caller.
func (c *Conduit) Reset() error {
	c.shut(func() {
		_, _ = c.channel.SendRequest(resetRequest, false, nil) // likewise
	})
	return nil
}

func (c *Conduit) shut(last func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	c.closed, c.queue, c.held = true, nil, 0
	c.memory.give(c.window - firstWindow)
	c.reading.stop()
	c.limit.stop()
	c.readable.Broadcast()
	c.writable.Broadcast()
	go func() {
		last()
		_ = c.channel.Close()
	}()
}

// fail records why nothing more comes or goes.
func (c *Conduit) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken == nil {
		c.broken = err
	}
	c.readable.Broadcast()
	c.writable.Broadcast()
}

// LocalAddr implements net.Conn.
func (c *Conduit) LocalAddr() net.Addr { return conduitAddr{} }

// RemoteAddr implements net.Conn.
func (c *Conduit) RemoteAddr() net.Addr { return conduitAddr{} }

// conduitAddr is the address of either end: there is none.
type conduitAddr struct{}

func (conduitAddr) Network() string { return "stream" }
func (conduitAddr) String() string  { return "stream" }

// SetDeadline implements net.Conn.
func (c *Conduit) SetDeadline(t time.Time) error {
	_ = c.SetReadDeadline(t) // both fail alike
	return c.SetWriteDeadline(t)
}

// SetReadDeadline implements net.Conn.
func (c *Conduit) SetReadDeadline(t time.Time) error { return c.set(&c.reading, c.readable, t) }

// SetWriteDeadline implements net.Conn. It counts while the other end takes
// nothing; a link that takes nothing is ended as a whole.
func (c *Conduit) SetWriteDeadline(t time.Time) error { return c.set(&c.limit, c.writable, t) }

func (c *Conduit) set(d *deadline, wake *sync.Cond, t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return net.ErrClosed
	}
	d.stop()
	d.at = t
	if left := time.Until(t); !t.IsZero() && left > 0 {
		d.timer = time.AfterFunc(left, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			wake.Broadcast()
		})
	}
	wake.Broadcast()
	return nil
}

// deadline is guarded by the conduit's lock.
type deadline struct {
	at    time.Time
	timer *time.Timer
}

func (d *deadline) over() bool { return !d.at.IsZero() && !time.Now().Before(d.at) }

func (d *deadline) stop() {
	if d.timer != nil {
		d.timer.Stop()
	}
}
