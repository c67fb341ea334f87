package guest

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/guest/egress"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
	"golang.org/x/sys/unix"
)

// dialTime is how long a connection inside may take. Loopback answers at once,
// unless the backlog of the server is full.
const dialTime = 10 * time.Second

// dial connects the host to a server inside. The guest's own ports are none.
func (g *guest) dial(port uint16) (*net.TCPConn, error) {
	if port == egress.ConnectionPort || port == egress.ResolverPort || port == 0 {
		return nil, fault.New(fault.Invalid, "cannot connect to port %d inside: it is the sandbox's own", port)
	}
	ctx, cancel := context.WithTimeout(context.Background(), dialTime)
	defer cancel()
	conn, err := dialInside(ctx, port)
	if err != nil {
		cause := errors.New("nothing listens there")
		if !errors.Is(err, unix.ECONNREFUSED) {
			cause = err
		}
		return nil, fault.Wrap(fault.Unavailable, cause, "cannot connect to port %d inside", port)
	}
	return conn, nil
}

// serveDials makes connections inside and passes their descriptors to the
// keeper, which moves the bytes. Descriptors never go the other way: a socket
// of the host, once inside, could be disconnected and connected to elsewhere.
func (g *guest) serveDials(conn *net.UnixConn) {
	link := wire.NewDials(conn)
	defer link.Close()
	for {
		wanted, err := link.Wanted()
		if err != nil {
			return
		}
		go func() {
			conn, err := g.dial(wanted.Port)
			if err != nil {
				_ = link.Refuse(wanted.ID, err.Error()) // a keeper that is gone needs no answer
				return
			}
			_ = link.Pass(wanted.ID, conn)
			conn.Close() // the keeper has its own descriptor by then
		}()
	}
}

// connection is the result of OpForward; it writes an empty object.
type connection struct{ conn *net.TCPConn }

// MarshalJSON makes it the result that the client waits for.
func (*connection) MarshalJSON() ([]byte, error) { return []byte("{}"), nil }

// connect is dialling where the wire is all there is.
func (g *guest) connect(x *exchange) (any, error) {
	conn, err := g.dial(x.request.Port)
	if err != nil {
		return nil, err
	}
	return &connection{conn}, nil
}

// carry moves bytes both ways until both have ended.
func (c *connection) carry(stream wire.Stream) {
	var moving sync.WaitGroup
	moving.Go(func() {
		_, err := io.Copy(c.conn, stream)
		if err == nil {
			err = c.conn.CloseWrite()
		}
		if err != nil {
			abort(c.conn, stream)
		}
	})
	moving.Go(func() {
		_, err := io.Copy(stream, c.conn)
		if err == nil {
			err = stream.CloseWrite()
		}
		if err != nil {
			abort(c.conn, stream)
		}
	})
	moving.Wait()
	c.conn.Close()
}

// abort ends both sides at once: half of a connection broke.
func abort(conn *net.TCPConn, stream wire.Stream) {
	_ = conn.SetLinger(0)
	conn.Close()
	_ = wire.Reset(stream) // nothing is left to lose
}
