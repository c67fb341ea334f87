package egress

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// chunk is what is read at once while a stream is slow.
	chunk = 32 << 10
	// fullReads in a row make a stream a fast one, which is then spliced.
	fullReads = 4
	// spliceFor is how long one stretch of splicing lasts before the stream
	// is looked at again.
	spliceFor = time.Second
	// worthSplicing is what a stretch must have moved to be followed by another.
	worthSplicing = 1 << 20
	forever       = int64(1) << 62
)

// stream moves the bytes of one direction. A stream that waits holds no buffer
// and no pipe, so that thousands of idle connections cost little more than
// their sockets: splice(2) needs a pipe per direction, and Go keeps one for as
// long as a copy lasts. Pipes count against the user's fs.pipe-user-pages-soft,
// beyond which all of the user's new pipes shrink (pipe(7)). So a stream starts
// with borrowed buffers and splices only while it is fast.
type stream struct {
	dst, src net.Conn
	buffers  *sync.Pool    // of *[chunk]byte
	halfOpen time.Duration // longest silence once the other direction has ended
	moved    atomic.Int64
	closing  atomic.Bool // the other direction has ended
}

// otherEnded starts the limit on silence. It may be called at any time.
func (s *stream) otherEnded() {
	s.closing.Store(true)
	_ = s.src.SetReadDeadline(time.Now().Add(s.halfOpen)) // the stream sees a dead socket itself
}

// run moves up to limit bytes and returns nil at their end or at the end of the
// source, whichever comes first; done is how many it moved.
func (s *stream) run(limit int64) (done int64, err error) {
	src, srcTCP := s.src.(*net.TCPConn)
	dst, dstTCP := s.dst.(*net.TCPConn)
	if held, ok := s.src.(passer); ok {
		return s.relay(held, limit)
	}
	if !srcTCP {
		return s.copySlowly(limit)
	}
	raw, err := src.SyscallConn()
	if err != nil {
		return 0, err
	}
	reader := lazyReader{raw: raw, buffers: s.buffers}
	full := 0
	mark := int64(0) // moved before the last deadline
	for done < limit {
		if full >= fullReads && dstTCP {
			n, end, err := s.splice(dst, src, limit-done)
			done += n
			if end || err != nil {
				return done, err
			}
			if n < worthSplicing {
				full = 0
			}
			continue
		}
		n, err := reader.pass(s.dst, limit-done)
		done += n
		s.moved.Add(n)
		if n == chunk {
			full++
		} else {
			full = 0
		}
		switch {
		case errors.Is(err, io.EOF):
			return done, nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			if done == mark {
				return done, err
			}
			mark = done
			if err := s.rearm(); err != nil {
				return done, err
			}
		case err != nil:
			return done, err
		}
	}
	return done, nil
}

// splice lets the kernel move bytes for a while.
func (s *stream) splice(dst, src *net.TCPConn, limit int64) (n int64, end bool, err error) {
	if err := src.SetReadDeadline(time.Now().Add(spliceFor)); err != nil {
		return 0, false, err
	}
	limited := &io.LimitedReader{R: src, N: limit}
	n, err = dst.ReadFrom(limited)
	s.moved.Add(n)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return n, false, s.rearm()
	case err != nil:
		return n, false, err
	case n < limit:
		return n, true, nil
	}
	return n, false, s.rearm()
}

// rearm restores the deadline between stretches. It reads the flag after clearing
// the deadline, so it cannot miss otherEnded, which sets them in the other order.
func (s *stream) rearm() error {
	if err := s.src.SetReadDeadline(time.Time{}); err != nil || !s.closing.Load() {
		return err
	}
	return s.src.SetReadDeadline(time.Now().Add(s.halfOpen))
}

// passer is a connection that holds the bytes that have come and writes them to
// their destination itself: no buffer is needed to move them. Pass waits until
// there is something, and writes at most limit bytes.
type passer interface {
	Pass(w io.Writer, limit int64) (int64, error)
}

func (s *stream) relay(src passer, limit int64) (done int64, err error) {
	mark := int64(0)
	for done < limit {
		n, err := src.Pass(s.dst, limit-done)
		done += n
		s.moved.Add(n)
		switch {
		case errors.Is(err, io.EOF):
			return done, nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			if done == mark {
				return done, err
			}
			mark = done
			if err := s.rearm(); err != nil {
				return done, err
			}
		case err != nil:
			return done, err
		}
	}
	return done, nil
}

// copySlowly serves connections that are not plain sockets.
func (s *stream) copySlowly(limit int64) (done int64, err error) {
	return s.relay(through{s.src, make([]byte, chunk/4)}, limit)
}

// through passes with a buffer.
type through struct {
	src    io.Reader
	buffer []byte
}

func (t through) Pass(w io.Writer, limit int64) (int64, error) {
	n, err := t.src.Read(t.buffer[:min(int64(len(t.buffer)), limit)])
	if n > 0 {
		if _, err := w.Write(t.buffer[:n]); err != nil {
			return 0, err
		}
	}
	return int64(n), err
}

// lazyReader reads from a socket with a buffer that it borrows only while there
// is something to read.
type lazyReader struct {
	raw     syscall.RawConn
	buffers *sync.Pool
}

// pass moves the bytes of one read, at most limit.
func (r *lazyReader) pass(dst io.Writer, limit int64) (int64, error) {
	var buf *[chunk]byte
	var n int
	var failed error
	err := r.raw.Read(func(fd uintptr) bool {
		buf = r.buffers.Get().(*[chunk]byte)
		for {
			n, failed = syscall.Read(int(fd), buf[:min(chunk, limit)])
			if failed != syscall.EINTR {
				break
			}
		}
		if failed == syscall.EAGAIN {
			r.buffers.Put(buf)
			buf = nil
			return false // wait, and be called again
		}
		return true
	})
	if buf == nil {
		return 0, err
	}
	defer r.buffers.Put(buf)
	switch {
	case failed != nil:
		return 0, os.NewSyscallError("read", failed)
	case n <= 0:
		return 0, io.EOF
	}
	written, err := dst.Write(buf[:n])
	return int64(written), err
}

// closeWrite passes an end of stream on.
func closeWrite(conn net.Conn) error {
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// reset ends a connection at once, so that the other side sees a refusal and
// not an orderly end.
func reset(conn net.Conn) {
	switch conn := conn.(type) {
	case *net.TCPConn:
		_ = conn.SetLinger(0) // fails only on a dead socket
	case interface{ Reset() error }:
		_ = conn.Reset()
		return
	}
	_ = conn.Close() // nothing is left to lose
}
