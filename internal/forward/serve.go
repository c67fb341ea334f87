package forward

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/egress"
)

// Conn is a connection to a server inside.
type Conn interface {
	io.ReadWriteCloser
	CloseWrite() error
}

// Dial makes a connection to a port inside. It gives up when gone is closed.
type Dial func(port uint16, gone <-chan struct{}) (Conn, error)

// Listeners are the open ports of one sandbox.
type Listeners struct {
	ports   []Port
	sockets [][]net.Listener
	active  atomic.Int64
}

// Active counts the connections of this moment; nil has none.
func (l *Listeners) Active() int {
	if l == nil {
		return 0
	}
	return int(l.active.Load())
}

func (l *Listeners) add(port Port, sockets []net.Listener) {
	l.ports, l.sockets = append(l.ports, port), append(l.sockets, sockets)
}

// Close stops listening. Open connections go on. A nil l is closed.
func (l *Listeners) Close() {
	if l == nil {
		return
	}
	for _, sockets := range l.sockets {
		for _, socket := range sockets {
			_ = socket.Close() // nothing was written to it
		}
	}
}

// Serve forwards connections until Close, at most most at the same time; further
// ones wait in the backlog.
func (l *Listeners) Serve(dial Dial, most int) {
	var serving sync.WaitGroup
	f := &forwarder{dial: dial, buffers: egress.NewBuffers(), places: make(chan struct{}, most), active: &l.active}
	for i, sockets := range l.sockets {
		for _, socket := range sockets {
			serving.Go(func() { f.accept(socket, uint16(l.ports[i].Inside)) })
		}
	}
	serving.Wait()
}

type forwarder struct {
	dial    Dial
	buffers *sync.Pool
	places  chan struct{}
	active  *atomic.Int64
}

func (f *forwarder) accept(socket net.Listener, inside uint16) {
	for {
		f.places <- struct{}{}
		conn, err := socket.Accept()
		if err != nil {
			<-f.places
			if errors.Is(err, net.ErrClosed) {
				return
			}
			time.Sleep(10 * time.Millisecond) // out of descriptors: some come free
			continue
		}
		go func() {
			defer func() { <-f.places }()
			f.active.Add(1)
			defer f.active.Add(-1)
			f.forward(conn.(*net.TCPConn), inside)
		}()
	}
}

// dialTime is how long a client waits for a connection inside: a paused or
// overloaded sandbox answers late.
const dialTime = 30 * time.Second

// forward connects one client. If nothing listens inside it is reset at once: a
// connection accepted here would otherwise look like a server that hangs.
func (f *forwarder) forward(client *net.TCPConn, inside uint16) {
	gone := make(chan struct{})
	timer := time.AfterFunc(dialTime, func() { close(gone) })
	server, err := f.dial(inside, gone)
	timer.Stop()
	if err != nil {
		abort(client)
		return
	}
	defer server.Close()
	defer client.Close()
	var moving sync.WaitGroup
	move := func(from, to func() error) {
		moving.Go(func() {
			err := from()
			if err == nil {
				err = to()
			}
			if err != nil {
				// Half of it is broken: both sides should see that.
				abort(client)
				abort(server)
			}
		})
	}
	move(func() error { return f.carry(server, client) }, server.CloseWrite)
	move(func() error { return f.carry(client, server) }, client.CloseWrite)
	moving.Wait()
}

func (f *forwarder) carry(to, from Conn) error {
	dst, dstOK := to.(net.Conn)
	src, srcOK := from.(net.Conn)
	if dstOK && srcOK {
		return egress.Carry(dst, src, f.buffers)
	}
	_, err := io.Copy(struct{ io.Writer }{to}, struct{ io.Reader }{from})
	return err
}

// resetter is a connection inside that can be broken off, and is not a socket.
type resetter interface{ Reset() error }

// abort ends a connection so that the other side sees a reset.
func abort(conn Conn) {
	if stream, ok := conn.(resetter); ok {
		_ = stream.Reset() // nothing is left to lose
		return
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // fails only on a dead socket
	}
	_ = conn.Close() // nothing is left to lose
}
