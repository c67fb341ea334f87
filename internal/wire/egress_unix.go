//go:build unix

package wire

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// EgressHello opens a connection to the guest's socket that is no SSH link:
// where host and guest share a kernel, the connections that programs inside
// make cross over as descriptors, and DNS messages as frames.
const EgressHello = "LBEG\x01"

// The kinds of frames on an egress connection.
const (
	KindConnection Kind = 'c' // guest → host: JSON of Connection, with one descriptor
	KindQuery      Kind = 'n' // guest → host: id (8 bytes), 1 for TCP (1 byte), DNS message
	KindAnswer     Kind = 'a' // host → guest: id, DNS message; none means no answer
	// A datagram, either way: its source and destination as the program inside
	// has them (each 16 bytes of address and 2 of port), the length of a name
	// (1 byte), the name of the process, the payload.
	KindDatagram    Kind = 'u'
	KindUnreachable Kind = 'x' // host → guest: source and destination of what nobody will answer
)

// maxEgress is the largest frame: a DNS message or a datagram has at most 65535
// bytes (RFC 1035, section 4.2.2; RFC 768).
const maxEgress = 65535 + 2*endpointSize + 1 + 255

const endpointSize = 18

// Connection is one TCP connection that a program inside has made.
type Connection struct {
	Destination netip.AddrPort `json:"destination"` // as the program wanted it
	Process     string         `json:"process"`     // who, as far as the guest knows
}

// Query is one DNS message from inside.
type Query struct {
	ID      uint64 // chosen by the guest, returned with the answer
	TCP     bool
	Message []byte
}

// Datagram is one datagram of the exchange that a program at Source inside has
// with Destination, in either direction.
type Datagram struct {
	Source, Destination netip.AddrPort
	Process             string // who, as far as the guest knows; empty from the host
	Payload             []byte
}

// Egress is either end of an egress connection. Sending is safe from many
// goroutines; receiving belongs to one.
type Egress struct {
	conn   *net.UnixConn
	mu     sync.Mutex // sending
	buffer []byte     // received and not yet taken
	files  []*os.File // received and not yet taken, oldest first
}

// NewEgress uses an open connection on which the hello has crossed.
func NewEgress(conn *net.UnixConn) *Egress { return &Egress{conn: conn} }

// Close ends the connection and what was received on it and not taken.
func (e *Egress) Close() error {
	return e.conn.Close()
}

// SendConnection passes the descriptor of conn to the other end. The caller
// closes its own copy.
func (e *Egress) SendConnection(conn *net.TCPConn, c Connection) error {
	payload, err := json.Marshal(c)
	if err != nil {
		return err
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var sendErr error
	if err := raw.Control(func(fd uintptr) {
		sendErr = e.send(KindConnection, payload, unix.UnixRights(int(fd)))
	}); err != nil {
		return err
	}
	return sendErr
}

// SendQuery hands a DNS message to the host.
func (e *Egress) SendQuery(q Query) error {
	payload := binary.BigEndian.AppendUint64(nil, q.ID)
	if q.TCP {
		payload = append(payload, 1)
	} else {
		payload = append(payload, 0)
	}
	return e.send(KindQuery, append(payload, q.Message...), nil)
}

// SendAnswer hands an answer back; an empty one means that there is none.
func (e *Egress) SendAnswer(id uint64, message []byte) error {
	return e.send(KindAnswer, append(binary.BigEndian.AppendUint64(nil, id), message...), nil)
}

// SendDatagram hands a datagram over.
func (e *Egress) SendDatagram(d Datagram) error {
	who := d.Process[:min(len(d.Process), 255)]
	payload := make([]byte, 0, 2*endpointSize+1+len(who)+len(d.Payload))
	payload = appendEndpoint(appendEndpoint(payload, d.Source), d.Destination)
	payload = append(append(payload, byte(len(who))), who...)
	return e.send(KindDatagram, append(payload, d.Payload...), nil)
}

// SendUnreachable tells the guest that what source sends to destination is
// refused.
func (e *Egress) SendUnreachable(source, destination netip.AddrPort) error {
	return e.send(KindUnreachable, appendEndpoint(appendEndpoint(nil, source), destination), nil)
}

func appendEndpoint(to []byte, endpoint netip.AddrPort) []byte {
	address := endpoint.Addr().As16()
	return binary.BigEndian.AppendUint16(append(to, address[:]...), endpoint.Port())
}

func readEndpoint(data []byte) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom16([16]byte(data)).Unmap(), binary.BigEndian.Uint16(data[16:]))
}

func (d *Datagram) parse(kind Kind, data []byte) error {
	const addresses = 2 * endpointSize
	if len(data) < addresses || kind == KindDatagram && (len(data) <= addresses || len(data) < addresses+1+int(data[addresses])) {
		return fault.New(fault.Unavailable, "a datagram is too short")
	}
	d.Source, d.Destination = readEndpoint(data), readEndpoint(data[endpointSize:])
	if kind == KindDatagram {
		rest := data[addresses+1:]
		who := int(data[addresses])
		d.Process, d.Payload = string(rest[:who]), append([]byte(nil), rest[who:]...)
	}
	return nil
}

func (e *Egress) send(kind Kind, payload, rights []byte) error {
	frame := append(binary.BigEndian.AppendUint32([]byte{byte(kind)}, uint32(len(payload))), payload...)
	e.mu.Lock()
	defer e.mu.Unlock()
	n, _, err := e.conn.WriteMsgUnix(frame, rights, nil)
	if err == nil && n < len(frame) {
		_, err = e.conn.Write(frame[n:])
	}
	return err
}

// Received is one frame of an egress connection.
type Received struct {
	Kind       Kind
	Connection Connection
	Conn       *net.TCPConn // with KindConnection; the caller closes it; nil when no descriptor was left for it
	Query      Query        // with KindQuery and KindAnswer
	Datagram   Datagram     // with KindDatagram and KindUnreachable
}

// Receive waits for the next frame. The other end is not trusted: frames are
// bounded, and descriptors that are not TCP connections end it.
func (e *Egress) Receive() (Received, error) {
	for {
		if len(e.buffer) >= 5 {
			size := int(binary.BigEndian.Uint32(e.buffer[1:5]))
			if size > maxEgress {
				return Received{}, fault.New(fault.Unavailable, "cannot use an egress frame of %d bytes", size)
			}
			if len(e.buffer) >= 5+size {
				frame := e.buffer[:5+size]
				received, err := e.parse(Kind(frame[0]), frame[5:])
				e.buffer = append(e.buffer[:0], e.buffer[5+size:]...)
				return received, err
			}
		}
		if err := e.fill(); err != nil {
			return Received{}, err
		}
	}
}

func (e *Egress) fill() error {
	data := make([]byte, 16<<10)
	control := make([]byte, unix.CmsgSpace(16*4))
	n, oobn, flags, _, err := e.conn.ReadMsgUnix(data, control)
	if err != nil {
		return err
	}
	if n == 0 {
		return io.EOF
	}
	e.buffer = append(e.buffer, data[:n]...)
	messages, err := unix.ParseSocketControlMessage(control[:oobn])
	if err != nil {
		return err
	}
	taken := 0
	for _, message := range messages {
		fds, err := unix.ParseUnixRights(&message)
		if err != nil {
			continue // credentials or such: nothing that we asked for
		}
		for _, fd := range fds {
			unix.CloseOnExec(fd)
			e.files = append(e.files, os.NewFile(uintptr(fd), "connection"))
			taken++
		}
	}
	if flags&unix.MSG_CTRUNC != 0 {
		if taken > 0 {
			return fault.New(fault.Unavailable, "too many descriptors in one message")
		}
		// This process has none left. The kernel closed the one that came, and
		// ends each read behind a descriptor, so that its place in order is here.
		e.files = append(e.files, nil)
	}
	return nil
}

func (e *Egress) parse(kind Kind, payload []byte) (Received, error) {
	received := Received{Kind: kind}
	switch kind {
	case KindConnection:
		if len(e.files) == 0 {
			return received, fault.New(fault.Unavailable, "a connection came without its descriptor")
		}
		file := e.files[0]
		e.files = e.files[1:]
		if file == nil {
			return received, json.Unmarshal(payload, &received.Connection)
		}
		conn, err := net.FileConn(file)
		if closed := file.Close(); errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) {
			return received, errors.Join(closed, json.Unmarshal(payload, &received.Connection))
		} else if err = errors.Join(err, closed); err != nil {
			return received, err
		}
		tcp, ok := conn.(*net.TCPConn)
		if !ok {
			return received, errors.Join(fault.New(fault.Unavailable, "a descriptor is no TCP connection"), conn.Close())
		}
		received.Conn = tcp
		return received, json.Unmarshal(payload, &received.Connection)
	case KindQuery:
		if len(payload) < 9 {
			return received, fault.New(fault.Unavailable, "a query is too short")
		}
		received.Query = Query{ID: binary.BigEndian.Uint64(payload), TCP: payload[8] == 1, Message: append([]byte(nil), payload[9:]...)}
	case KindAnswer:
		if len(payload) < 8 {
			return received, fault.New(fault.Unavailable, "an answer is too short")
		}
		received.Query = Query{ID: binary.BigEndian.Uint64(payload), Message: append([]byte(nil), payload[8:]...)}
	case KindDatagram, KindUnreachable:
		return received, received.Datagram.parse(kind, payload)
	default:
		return received, fault.New(fault.Unavailable, "cannot understand an egress frame of kind %q", string(rune(kind)))
	}
	return received, nil
}
