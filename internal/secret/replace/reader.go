package replace

import (
	"errors"
	"io"
)

// readSize is how much is read at once. An available piece is passed on without
// waiting for more.
const readSize = 16 << 10

// Reader gives the content of src, replaced. It reads no further than it is asked
// to, and passes each piece on when it comes. However it ends, it then wipes its
// buffers; wipe it where it is not read to the end.
func (t *Table) Reader(src io.Reader) *Reader {
	return &Reader{src: src, stream: t.Stream()}
}

// Reader is made by [Table.Reader].
type Reader struct {
	src    io.Reader
	stream *Stream
	in     []byte
	out    []byte // whole, of which the next bytes begin at next
	next   int
	err    error
}

// Read implements io.Reader.
func (r *Reader) Read(p []byte) (int, error) {
	for r.next == len(r.out) {
		if r.err != nil {
			r.Wipe()
			return 0, r.err
		}
		if len(p) == 0 {
			return 0, nil
		}
		if r.in == nil {
			r.in = make([]byte, readSize)
		}
		n, err := r.src.Read(r.in)
		r.err = err
		r.out, r.next = r.stream.Append(r.out[:0], r.in[:n], errors.Is(err, io.EOF)), 0
	}
	n := copy(p, r.out[r.next:])
	r.next += n
	return n, nil
}

// Wipe clears the reader's buffers; it must not be read after that.
func (r *Reader) Wipe() {
	if r.err == nil {
		r.err = io.ErrClosedPipe
	}
	clear(r.in)
	clear(r.out[:cap(r.out)])
	r.in, r.out, r.next = nil, nil, 0
	r.stream.Wipe()
}
