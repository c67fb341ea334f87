package egress

import (
	"net"
	"sync"
)

// Carry moves bytes from src to dst until src ends (nil) or one of them fails.
// A connection that waits holds neither a buffer nor a pipe; one that is fast
// is spliced. It is here for forwarded ports, which have no policy: their
// connections come in. All callers share buffers, which starts empty.
func Carry(dst, src net.Conn, buffers *sync.Pool) error {
	_, err := (&stream{dst: dst, src: src, buffers: buffers}).run(forever)
	return err
}

// NewBuffers makes the pool that Carry borrows buffers from.
func NewBuffers() *sync.Pool {
	return &sync.Pool{New: func() any { return new([chunk]byte) }}
}
