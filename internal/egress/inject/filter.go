package inject

import (
	"errors"
	"io"
	"net/http"
	"sync"

	"github.com/litterbox-sandbox/litterbox/internal/secret"
	"github.com/litterbox-sandbox/litterbox/internal/secret/replace"
)

// readSize is how much of a body is read at once. Bytes that are there are
// passed on without waiting for more.
const readSize = 16 << 10

// filter is a body in which a table replaces. It holds the secret until its
// end, however it ends. net/http may close a body while it is read.
type filter struct {
	body  io.ReadCloser
	atEnd func() // called when everything was read; may be nil

	mu      sync.Mutex
	stream  *replace.Stream
	held    *secret.Held // nil when given back
	reading bool         // from body, without mu
	closed  bool
	in, out []byte
	next    int // in out
	err     error
}

// newFilter takes over the reference to held.
func newFilter(body io.ReadCloser, table *replace.Table, held *secret.Held) *filter {
	return &filter{body: body, stream: table.Stream(), held: held}
}

// Read implements io.Reader.
func (f *filter) Read(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.next == len(f.out) {
		if f.closed {
			return 0, http.ErrBodyReadAfterClose
		}
		if f.err != nil {
			return 0, f.err
		}
		if len(p) == 0 {
			return 0, nil
		}
		f.fill()
	}
	n := copy(p, f.out[f.next:])
	f.next += n
	return n, nil
}

// fill is called with mu held, and releases it while it waits.
func (f *filter) fill() {
	if f.in == nil {
		f.in = make([]byte, readSize)
	}
	f.reading = true
	f.mu.Unlock()
	n, err := f.body.Read(f.in)
	f.mu.Lock()
	f.reading = false
	if f.closed {
		f.end()
		return
	}
	over := errors.Is(err, io.EOF)
	f.out, f.next, f.err = f.stream.Append(f.out[:0], f.in[:n], over), 0, err
	if err == nil {
		return
	}
	if over && f.atEnd != nil {
		f.atEnd()
	}
	f.end()
}

// end gives the value back, and wipes what was read ahead. The bytes waiting in
// out can still be read, unless the body was closed.
func (f *filter) end() {
	if f.held != nil {
		f.held.Release()
		f.held = nil
	}
	clear(f.in)
	f.stream.Wipe()
	if f.closed {
		clear(f.out[:cap(f.out)])
		f.out, f.next = nil, 0
	}
}

// Close implements io.Closer.
func (f *filter) Close() error {
	f.mu.Lock()
	f.closed = true
	if !f.reading {
		f.end()
	}
	f.mu.Unlock()
	return f.body.Close()
}

// watched is the body of a request that ends at a placeholder of a secret that
// does not belong to the host.
type watched struct {
	body    io.ReadCloser
	x       *exchange
	finder  *replace.Finder
	trailer http.Header
}

// Read implements io.Reader. The piece that completes a placeholder is not sent.
func (w *watched) Read(p []byte) (int, error) {
	n, err := w.body.Read(p)
	for id := range w.finder.Next(p[:n]) {
		if name := w.x.foreignID(id); name != "" {
			return 0, w.x.refusal.refuse(w.x.elsewhere(name))
		}
	}
	if errors.Is(err, io.EOF) {
		for _, values := range w.trailer {
			for _, value := range values {
				if name := w.x.foreignText(value); name != "" {
					return 0, w.x.refusal.refuse(w.x.elsewhere(name))
				}
			}
		}
	}
	return n, err
}

// Close implements io.Closer.
func (w *watched) Close() error { return w.body.Close() }

// refusal remembers that something was refused while streaming.
type refusal struct {
	deny func(why string) error // records it

	mu  sync.Mutex
	err error
}

func (r *refusal) refuse(why string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = r.deny(why)
	}
	return r.err
}

func (r *refusal) error() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}
