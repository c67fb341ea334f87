package egress

import (
	"bytes"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
)

// firstRead is enough for most heads; an idle connection holds no more between
// requests.
const firstRead = 4 << 10

// errTooLong ends a head or a line that never ends, errBudget one that came
// while all of the sandbox's memory for heads was in use.
var (
	errTooLong = errors.New("too long")
	errBudget  = errors.New("too many unfinished heads at once")
)

// budget bounds the bytes that all unfinished heads of a sandbox may hold
// beyond their first read.
type budget struct{ left atomic.Int64 }

// take reserves n bytes, or gives them back when n is negative.
func (b *budget) take(n int) bool {
	if b.left.Add(int64(-n)) >= 0 || n <= 0 {
		return true
	}
	b.left.Add(int64(n))
	return false
}

// intake is the beginning of a stream, kept so that it can be judged and then
// passed on.
type intake struct {
	src    net.Conn
	buf    []byte // what was read and not yet passed on
	budget *budget
	taken  int // from the budget

	// reading guards the above once a replay reads: our server may still read
	// in the background when the connection's flow ends.
	reading sync.Mutex
}

// fill reads at least one more byte, keeping no more than limit.
func (in *intake) fill(limit int) error {
	if len(in.buf) >= limit {
		return errTooLong
	}
	if len(in.buf) == cap(in.buf) {
		size := min(max(2*cap(in.buf), firstRead), limit)
		hold := max(0, size-firstRead)
		if !in.budget.take(hold - in.taken) {
			return errBudget
		}
		in.taken = hold
		in.buf = append(make([]byte, 0, size), in.buf...)
	}
	n, err := in.src.Read(in.buf[len(in.buf):cap(in.buf)])
	in.buf = in.buf[:len(in.buf)+n]
	if n > 0 {
		return nil
	}
	if err == nil {
		err = io.ErrNoProgress
	}
	return err
}

// advance drops the first n bytes, and frees all memory with the last of them.
func (in *intake) advance(n int) {
	if in.buf = in.buf[n:]; len(in.buf) == 0 {
		in.drop()
	}
}

// release gives up what is kept.
func (in *intake) release() {
	in.reading.Lock()
	defer in.reading.Unlock()
	in.drop()
}

func (in *intake) drop() {
	in.buf = nil
	in.budget.left.Add(int64(in.taken))
	in.taken = 0
}

// until reads up to and including the first end mark and returns the length;
// the bytes stay in the buffer.
func (in *intake) until(mark string, limit int) (int, error) {
	from := 0
	for {
		if at := bytes.Index(in.buf[from:], []byte(mark)); at >= 0 {
			if from+at+len(mark) > limit {
				return 0, errTooLong
			}
			return from + at + len(mark), nil
		}
		from = max(0, len(in.buf)-len(mark)+1)
		if err := in.fill(limit); err != nil {
			return 0, err
		}
	}
}

// replay is a connection whose first bytes have been read already.
type replay struct {
	net.Conn
	in *intake
}

// replay passes on what is kept, as much as fits.
func (in *intake) replay(p []byte) int {
	in.reading.Lock()
	defer in.reading.Unlock()
	n := copy(p, in.buf)
	if n > 0 {
		in.advance(n)
	}
	return n
}

func (r *replay) Read(p []byte) (int, error) {
	if n := r.in.replay(p); n > 0 {
		return n, nil
	}
	return r.Conn.Read(p)
}
