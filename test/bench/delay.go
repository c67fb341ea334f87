package main

import (
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// delayed is a link with the delay of a long way, on this machine: it accepts TCP
// connections and passes their bytes on to another address, each half a round trip
// after it came, in order. The bandwidth has no limit of its own.
type delayed struct {
	listener  net.Listener
	roundTrip atomic.Int64 // a [time.Duration], which may change at any time
	conns     sync.WaitGroup
	mu        sync.Mutex
	open      map[net.Conn]bool
	closed    bool
}

// Each direction of a connection holds at most this much.
const (
	pieceSize = 64 << 10
	pieces    = 1024
)

// piece is what one read brought, and when it is due at the other end. Without data
// it is the end of the direction.
type piece struct {
	data []byte
	due  time.Time
}

// delay begins a link to an address.
func delay(to string) (*delayed, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	d := &delayed{listener: listener, open: map[net.Conn]bool{}}
	d.conns.Go(func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			d.conns.Go(func() { d.serve(near, to) })
		}
	})
	return d, nil
}

func (d *delayed) set(roundTrip time.Duration) { d.roundTrip.Store(int64(roundTrip)) }

func (d *delayed) half() time.Duration { return time.Duration(d.roundTrip.Load()) / 2 }

func (d *delayed) port() int { return d.listener.Addr().(*net.TCPAddr).Port }

// Close ends the link with all connections.
func (d *delayed) Close() error {
	err := d.listener.Close()
	d.mu.Lock()
	d.closed = true
	for conn := range d.open {
		_ = conn.Close()
	}
	d.mu.Unlock()
	d.conns.Wait()
	return err
}

// keep notes connections that Close ends, and returns false after it.
func (d *delayed) keep(conns ...net.Conn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, conn := range conns {
		d.open[conn] = true
	}
	return !d.closed
}

func (d *delayed) drop(conns ...net.Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, conn := range conns {
		_ = conn.Close()
		delete(d.open, conn)
	}
}

// serve passes one connection on. It begins as late as the server of a far host
// would see it: TCP's three segments cross the link first.
func (d *delayed) serve(near net.Conn, to string) {
	defer d.drop(near)
	if !d.keep(near) {
		return
	}
	time.Sleep(3 * d.half())
	far, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer d.drop(far)
	if !d.keep(far) {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { d.carry(far, near) })
	both.Go(func() { d.carry(near, far) })
	both.Wait()
}

// carry carries one direction to its end, and that end with it.
func (d *delayed) carry(to, from net.Conn) {
	way, broken := make(chan piece, pieces), make(chan struct{})
	go func() {
		defer close(way)
		buffer := make([]byte, pieceSize)
		for {
			n, err := from.Read(buffer)
			if err != nil && err != io.EOF { // reset, or closed here
				_ = to.Close()
				return
			}
			select {
			case way <- piece{slices.Clone(buffer[:n]), time.Now().Add(d.half())}:
			case <-broken:
				return
			}
			if err != nil {
				return
			}
		}
	}()
	for p := range way {
		time.Sleep(time.Until(p.due))
		if len(p.data) == 0 { // the end
			_ = to.(*net.TCPConn).CloseWrite() // it may be closed
		} else if _, err := to.Write(p.data); err != nil {
			close(broken)
			_ = from.Close()
			return
		}
	}
}
