package egress

import (
	"errors"
	"io"
	"math"
	"net"
	"os"
	"sync"
	"syscall"

	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// carryChunk is how much is read from a connection at once.
const carryChunk = 32 << 10

var carryBuffers = sync.Pool{New: func() any { return new([carryChunk]byte) }}

// Carry moves bytes between a connection inside and a conduit until both
// directions have ended, and closes both. An orderly end closes one direction;
// anything else resets both sides. Without a conduit it resets the connection.
func Carry(conn *net.TCPConn, c *wire.Conduit) {
	if c == nil {
		reset(conn)
		return
	}
	abort := func() {
		_ = c.Reset() // nothing is left to lose
		reset(conn)
	}
	var out sync.WaitGroup
	out.Go(func() {
		if send(c, conn) != nil || c.CloseWrite() != nil {
			abort()
		}
	})
	for {
		_, err := c.Pass(conn, math.MaxInt64)
		if errors.Is(err, io.EOF) {
			err = conn.CloseWrite()
			if err == nil {
				break
			}
		}
		if err != nil {
			abort()
			break
		}
	}
	out.Wait()
	_ = c.Close()
	_ = conn.Close()
}

// send moves what a program sends until its end. While nothing comes it holds
// no buffer.
func send(c *wire.Conduit, conn *net.TCPConn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	for {
		var buffer *[carryChunk]byte
		var n int
		var failed error
		err := raw.Read(func(fd uintptr) bool {
			buffer = carryBuffers.Get().(*[carryChunk]byte)
			for {
				if n, failed = syscall.Read(int(fd), buffer[:]); failed != syscall.EINTR {
					break
				}
			}
			if failed == syscall.EAGAIN {
				carryBuffers.Put(buffer)
				buffer = nil
				return false // wait, and be called again
			}
			return true
		})
		if buffer == nil {
			return err
		}
		if err = os.NewSyscallError("read", failed); failed == nil && n > 0 {
			_, err = c.Write(buffer[:n])
		}
		carryBuffers.Put(buffer)
		if err != nil || n <= 0 {
			return err
		}
	}
}
