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

// dial connects the host to a server inside. The guest's own ports are not among them.
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

// port dials for a conduit of the keeper's.
func (g *guest) port(port uint16) (func(*wire.Conduit), error) {
	<-g.prepared
	conn, err := g.dial(port)
	if err != nil {
		return nil, err
	}
	return g.carrying(func(c *wire.Conduit) { egress.Carry(conn, c) }), nil
}

// announced finds the connection that the keeper carries.
func (g *guest) announced(id uint64) (func(*wire.Conduit), error) {
	<-g.prepared
	if g.egress == nil {
		return nil, errors.New("there is no network")
	}
	carry, err := g.egress.Announced(id)
	return g.carrying(carry), err
}

func (g *guest) carrying(carry func(*wire.Conduit)) func(*wire.Conduit) {
	return func(c *wire.Conduit) {
		g.rest.Begin()
		defer g.rest.End()
		carry(c)
	}
}

// announcing is the result of OpNetwork, which writes its answer itself.
type announcing struct{}

// announce serves the keeper that carries the sandbox's connections until the
// stream ends.
func (g *guest) announce(stream wire.Stream) {
	link, err := wire.ServeNetwork(stream, g.egress.Take)
	if err != nil {
		stream.Close() // Serve sees it end, and lets go of the link
	}
	g.rest.End() // it is open for as long as the sandbox runs
	defer g.rest.Begin()
	g.egress.Serve(link)
}

// connection is the result of OpForward; it writes an empty object.
type connection struct{ conn *net.TCPConn }

// MarshalJSON makes it the result that the client waits for.
func (*connection) MarshalJSON() ([]byte, error) { return []byte("{}"), nil }

// connect dials where the wire is the only way.
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
