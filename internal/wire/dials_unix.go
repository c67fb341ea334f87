//go:build unix

package wire

import (
	"encoding/binary"
	"net"
	"sync"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// ForwardHello opens a connection to the guest's socket that is not an SSH
// link: where host and guest share a kernel, the guest connects to servers
// inside and passes the connections out as descriptors.
const ForwardHello = "LBFW\x01"

// The kinds of frames on it. Each begins with an id of 8 bytes, chosen by the
// host and returned with the answer.
const (
	KindDial   Kind = 'd' // host → guest: port (2 bytes)
	KindDialed Kind = 'c' // guest → host: with one descriptor
	KindNoDial Kind = 'f' // guest → host: why not, as text
)

// Wanted is one connection that the host wants.
type Wanted struct {
	ID   uint64
	Port uint16
}

// Dials is the guest's end: Wanted belongs to one goroutine, the answers may
// come from any.
type Dials struct{ descriptors }

// NewDials uses an open connection on which the hello has crossed.
func NewDials(conn *net.UnixConn) *Dials { return &Dials{descriptors{conn: conn}} }

// Wanted waits for the next wanted connection.
func (d *Dials) Wanted() (Wanted, error) {
	kind, payload, err := d.next(10)
	if err != nil {
		return Wanted{}, err
	}
	if kind != KindDial || len(payload) != 10 {
		return Wanted{}, fault.New(fault.Invalid, "cannot understand a frame of kind %q", string(rune(kind)))
	}
	return Wanted{binary.BigEndian.Uint64(payload), binary.BigEndian.Uint16(payload[8:])}, nil
}

// Pass answers with a connection. The caller closes its own copy.
func (d *Dials) Pass(id uint64, conn *net.TCPConn) error {
	return d.sendConn(KindDialed, binary.BigEndian.AppendUint64(nil, id), conn)
}

// Refuse answers that there is no connection.
func (d *Dials) Refuse(id uint64, why string) error {
	return d.send(KindNoDial, append(binary.BigEndian.AppendUint64(nil, id), cut(why)...), nil)
}

// Dialer is the host's end. Dial may be called from any goroutine; Serve runs
// on a goroutine of its own and hands out the answers.
type Dialer struct {
	descriptors

	mu      sync.Mutex
	last    uint64
	waiting map[uint64]chan<- dialed // nil once Serve has ended
}

type dialed struct {
	conn *net.TCPConn
	err  error
}

// NewDialer uses an open connection on which the hello has crossed.
func NewDialer(conn *net.UnixConn) *Dialer {
	return &Dialer{descriptors: descriptors{conn: conn}, waiting: map[uint64]chan<- dialed{}}
}

// Dial asks for a connection to a port inside, and waits until it is there or
// gone is closed. A port without a listener is fault.Unavailable.
func (d *Dialer) Dial(port uint16, gone <-chan struct{}) (*net.TCPConn, error) {
	answer := make(chan dialed, 1)
	d.mu.Lock()
	if d.waiting == nil {
		d.mu.Unlock()
		return nil, fault.New(fault.Unavailable, "cannot connect to port %d inside: the sandbox is gone", port)
	}
	d.last++
	id := d.last
	d.waiting[id] = answer
	d.mu.Unlock()
	payload := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint64(nil, id), port)
	if err := d.send(KindDial, payload, nil); err != nil {
		d.take(id)
		return nil, err
	}
	select {
	case got := <-answer:
		return got.conn, got.err
	case <-gone:
	}
	if d.take(id) == nil { // the answer is on its way: it must not leak
		if got := <-answer; got.conn != nil {
			got.conn.Close()
		}
	}
	return nil, fault.New(fault.Canceled, "cannot connect to port %d inside: no client waits for it", port)
}

func (d *Dialer) take(id uint64) chan<- dialed {
	d.mu.Lock()
	defer d.mu.Unlock()
	waiter := d.waiting[id]
	delete(d.waiting, id)
	return waiter
}

// Serve hands out what the guest answers, until the connection ends. The guest
// is not trusted: frames are bounded, and anything but a TCP connection ends
// it.
func (d *Dialer) Serve() error {
	err := d.serve()
	d.mu.Lock()
	waiting := d.waiting
	d.waiting = nil
	d.mu.Unlock()
	for _, waiter := range waiting {
		waiter <- dialed{err: fault.Wrap(fault.Unavailable, err, "cannot connect inside")}
	}
	for _, file := range d.files {
		file.Close() // of nil, a harmless error
	}
	return err
}

func (d *Dialer) serve() error {
	for {
		kind, payload, err := d.next(maxText + 16)
		if err != nil {
			return err
		}
		if len(payload) < 8 {
			return fault.New(fault.Unavailable, "an answer is too short")
		}
		var got dialed
		switch kind {
		case KindDialed:
			if got.conn, err = d.takeConn(); err != nil {
				return err
			}
			if got.conn == nil {
				got.err = fault.New(fault.Unavailable, "cannot connect inside: this machine has no descriptor left for it")
			}
		case KindNoDial:
			got.err = fault.New(fault.Unavailable, "%s", printable(string(payload[8:])))
		default:
			return fault.New(fault.Unavailable, "cannot understand a frame of kind %q", string(rune(kind)))
		}
		waiter := d.take(binary.BigEndian.Uint64(payload))
		switch {
		case waiter != nil:
			waiter <- got
		case got.conn != nil:
			got.conn.Close() // no caller waits, or none ever asked
		}
	}
}
