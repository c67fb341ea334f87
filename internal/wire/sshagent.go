package wire

import (
	"context"
	"errors"
	"io"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// AcceptSSHAgent waits until a program inside connects to the socket at path, which
// the guest makes, and returns the connection (OpSSHAgent). Closing it closes s. The
// program is not trusted, and neither is what it sends.
func AcceptSSHAgent(ctx context.Context, s Stream, path string) (io.ReadWriteCloser, error) {
	defer context.AfterFunc(ctx, func() { s.Close() })()
	conn := &overFrames{s: s, in: NewReader(s), out: NewWriter(s)}
	if err := WriteJSON(conn.out, KindRequest, Request{Version: Version, Op: OpSSHAgent, Path: []byte(path)}); err != nil {
		return nil, lost(err)
	}
	kind, payload, err := conn.in.Next()
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, canceled(ctx, "cannot wait for a program of the sandbox")
	case err != nil:
		return nil, lost(err)
	case kind == KindError:
		return nil, failure(payload)
	case kind != KindStarted:
		return nil, fault.New(fault.Unavailable, "cannot understand the sandbox: a frame of kind %q where a program should begin", string(rune(kind)))
	}
	return conn, nil
}

// overFrames is a connection whose bytes are frames of a stream, at the host's end.
type overFrames struct {
	s    Stream
	in   *Reader
	out  *Writer
	left []byte // of the last frame
}

// Read implements io.Reader.
func (c *overFrames) Read(p []byte) (int, error) {
	for len(c.left) == 0 {
		kind, payload, err := c.in.Next()
		switch {
		case errors.Is(err, io.ErrUnexpectedEOF):
			return 0, lost(err)
		case err != nil:
			return 0, err
		case kind == KindStdout:
			c.left = payload
		case kind == KindResult:
			return 0, io.EOF
		case kind == KindError:
			return 0, failure(payload)
		}
	}
	n := copy(p, c.left)
	c.left = c.left[n:]
	return n, nil
}

// Write implements io.Writer.
func (c *overFrames) Write(p []byte) (written int, err error) {
	for written < len(p) {
		part := p[written:min(len(p), written+chunk)]
		if err := c.out.Frame(KindStdin, part); err != nil {
			return written, err
		}
		written += len(part)
	}
	return written, nil
}

// Close implements io.Closer.
func (c *overFrames) Close() error { return c.s.Close() }
