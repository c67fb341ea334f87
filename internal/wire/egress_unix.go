//go:build unix

package wire

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"net"
	"net/netip"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// EgressHello opens a connection to the guest's socket that is not an SSH link:
// where host and guest share a kernel, the connections that programs inside
// make cross over as descriptors, and DNS messages as frames.
const EgressHello = "LBEG\x01"

// The kinds of frames on an egress connection.
const (
	KindConnection Kind = 'c' // guest → host: JSON of Connection, with one descriptor
	// A connection that the guest holds until the host carries it (Link.Carry):
	// its id (8 bytes), JSON of Connection. Id 0 is a connection that the guest
	// has reset for want of room: it is only for the record.
	KindAnnounced Kind = 'l'
	KindDeclined  Kind = 'r' // host → guest: id of an announced connection that is not carried
	KindQuery     Kind = 'n' // guest → host: id (8 bytes), 1 for TCP (1 byte), DNS message
	KindAnswer    Kind = 'a' // host → guest: id, DNS message; none means no answer
	// A datagram, either way: its source and destination as the program inside
	// has them (each 16 bytes of address and 2 of port), the length of a name
	// (1 byte), the name of the process, the payload.
	KindDatagram    Kind = 'u'
	KindUnreachable Kind = 'x' // host → guest: source and destination of a datagram that gets no answer
)

// maxEgress is the largest frame: a DNS message or a datagram has at most 65535
// bytes (RFC 1035, section 4.2.2; RFC 768).
const maxEgress = 65535 + 2*endpointSize + 1 + 255

const endpointSize = 18

// Connection is one TCP connection that a program inside has made.
type Connection struct {
	Destination netip.AddrPort `json:"destination"` // as the program wanted it
	Process     string         `json:"process"`     // the program's, as far as the guest knows
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
	Process             string // the program's, as far as the guest knows; empty from the host
	Payload             []byte
}

// Egress is either end of an egress connection. Sending is safe from many
// goroutines; receiving belongs to one.
type Egress struct {
	frames
	passes *descriptors // nil where connections are announced instead
}

// frames are what an egress connection is made of.
type frames interface {
	send(kind Kind, payload, rights []byte) error
	next(limit int) (Kind, []byte, error)
	Close() error
}

// NewEgress uses an open connection on which the hello has crossed.
func NewEgress(conn *net.UnixConn) *Egress {
	d := &descriptors{conn: conn}
	return &Egress{frames: d, passes: d}
}

// ServeNetwork answers OpNetwork on s, as the guest. The connection is given to
// ready before the host can read the answer, so that anything the host starts
// next finds it; frames sent to it meanwhile wait.
func ServeNetwork(s Stream, ready func(*Egress)) (*Egress, error) {
	over := newStreamed(s)
	egress := &Egress{frames: over}
	over.out.mu.Lock()
	defer over.out.mu.Unlock()
	ready(egress)
	return egress, WriteJSON(s, KindResult, Empty{})
}

// OpenNetwork makes s an egress connection, as the host.
func OpenNetwork(ctx context.Context, s Stream) (*Egress, error) {
	if err := call(ctx, s, Request{Op: OpNetwork}, nil, nil, &Empty{}); err != nil {
		return nil, err
	}
	return &Egress{frames: newStreamed(s)}, nil
}

// streamed are frames on a stream on which OpNetwork was answered: connections
// are announced on it, and carried by conduits of the link.
type streamed struct {
	Stream
	out *Writer
	in  *Reader
}

func newStreamed(s Stream) *streamed {
	return &streamed{Stream: s, out: NewWriter(s), in: NewReader(s)}
}

func (s *streamed) send(kind Kind, payload, _ []byte) error { return s.out.Frame(kind, payload) }

func (s *streamed) next(limit int) (Kind, []byte, error) {
	kind, payload, err := s.in.Next()
	if err == nil && len(payload) > limit {
		err = fault.New(fault.Unavailable, "cannot use a frame of %d bytes", len(payload))
	}
	return kind, append([]byte(nil), payload...), err
}

// Passes reports whether connections cross over as descriptors.
func (e *Egress) Passes() bool { return e.passes != nil }

// SendConnection passes the descriptor of conn to the other end. The caller
// closes its own copy.
func (e *Egress) SendConnection(conn *net.TCPConn, c Connection) error {
	payload, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return e.passes.sendConn(KindConnection, payload, conn)
}

// Announce tells the host of a connection that the guest holds under id.
func (e *Egress) Announce(id uint64, c Connection) error {
	payload, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return e.send(KindAnnounced, append(binary.BigEndian.AppendUint64(nil, id), payload...), nil)
}

// Decline tells the guest that an announced connection is not carried.
func (e *Egress) Decline(id uint64) error {
	return e.send(KindDeclined, binary.BigEndian.AppendUint64(nil, id), nil)
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

// SendUnreachable tells the guest that datagrams from source to destination are
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

// Received is one frame of an egress connection.
type Received struct {
	Kind       Kind
	ID         uint64 // with KindAnnounced and KindDeclined
	Connection Connection
	Conn       *net.TCPConn // with KindConnection; the caller closes it; nil when no descriptor was left for it
	Query      Query        // with KindQuery and KindAnswer
	Datagram   Datagram     // with KindDatagram and KindUnreachable
}

// Receive waits for the next frame. The other end is not trusted: frames are
// bounded, and descriptors that are not TCP connections end it.
func (e *Egress) Receive() (Received, error) {
	kind, payload, err := e.next(maxEgress)
	if err != nil {
		return Received{}, err
	}
	return e.parse(kind, payload)
}

func (e *Egress) parse(kind Kind, payload []byte) (Received, error) {
	received := Received{Kind: kind}
	switch kind {
	case KindAnnounced, KindDeclined:
		if len(payload) < 8 {
			return received, fault.New(fault.Unavailable, "an announcement is too short")
		}
		received.ID = binary.BigEndian.Uint64(payload)
		if kind == KindDeclined {
			return received, nil
		}
		return received, json.Unmarshal(payload[8:], &received.Connection)
	case KindConnection:
		if e.passes == nil {
			return received, fault.New(fault.Unavailable, "a connection came without its descriptor")
		}
		conn, err := e.passes.takeConn()
		if err != nil {
			return received, err
		}
		received.Conn = conn
		return received, json.Unmarshal(payload, &received.Connection)
	case KindQuery:
		if len(payload) < 9 {
			return received, fault.New(fault.Unavailable, "a query is too short")
		}
		received.Query = Query{ID: binary.BigEndian.Uint64(payload), TCP: payload[8] == 1, Message: payload[9:]}
	case KindAnswer:
		if len(payload) < 8 {
			return received, fault.New(fault.Unavailable, "an answer is too short")
		}
		received.Query = Query{ID: binary.BigEndian.Uint64(payload), Message: payload[8:]}
	case KindDatagram, KindUnreachable:
		return received, received.Datagram.parse(kind, payload)
	default:
		return received, fault.New(fault.Unavailable, "cannot understand an egress frame of kind %q", string(rune(kind)))
	}
	return received, nil
}
