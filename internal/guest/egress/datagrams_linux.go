package egress

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// maxDatagram is the largest payload of UDP, and more than any of ours has.
const maxDatagram = 65535

// packets sends datagrams and refusals to programs inside, in the name of their
// peers.
type packets struct{ out4, out6 int }

// CarryDatagrams hands datagrams that programs send to the keeper, from now on.
func (e *Intake) CarryDatagrams(sockets DatagramSockets) error {
	e.packets = &packets{sockets.Out4, sockets.Out6}
	names := &senders{names: map[netip.AddrPort]sender{}}
	for _, fd := range []int{sockets.In4, sockets.In6} {
		file := os.NewFile(uintptr(fd), "datagrams")
		conn, err := net.FilePacketConn(file)
		if err = errors.Join(err, file.Close()); err != nil {
			return err
		}
		udp, ok := conn.(*net.UDPConn)
		if !ok {
			return errors.Join(errors.New("a socket for datagrams is none"), conn.Close())
		}
		go e.passDatagrams(udp, names)
	}
	return nil
}

// passDatagrams decides nothing, and keeps nothing but the names of senders. It
// refuses a datagram that cannot be handed on, as a closed port would.
func (e *Intake) passDatagrams(conn *net.UDPConn, names *senders) {
	buffer, control := make([]byte, maxDatagram), make([]byte, unix.CmsgSpace(unix.SizeofSockaddrInet6))
	for {
		n, oobn, _, from, err := conn.ReadMsgUDPAddrPort(buffer, control)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		from = netip.AddrPortFrom(from.Addr().Unmap(), from.Port())
		to, ok := SentTo(control[:oobn])
		if !ok || to.Addr().IsLoopback() || to.Port() == 0 {
			continue // sent to our own port: there is no destination to ask about
		}
		keeper := e.keeper.Load()
		if keeper == nil || keeper.SendDatagram(wire.Datagram{
			Source: from, Destination: to, Process: names.of(&e.Owners, from), Payload: buffer[:n],
		}) != nil {
			e.packets.refuse(from, to)
		}
	}
}

// SentTo finds the address that a datagram was sent to (ip(7),
// IP_RECVORIGDSTADDR): a struct sockaddr.
func SentTo(control []byte) (netip.AddrPort, bool) {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return netip.AddrPort{}, false
	}
	for _, m := range messages {
		switch {
		case m.Header.Level == unix.SOL_IP && m.Header.Type == unix.IP_ORIGDSTADDR && len(m.Data) >= 8:
			return netip.AddrPortFrom(netip.AddrFrom4([4]byte(m.Data[4:])), binary.BigEndian.Uint16(m.Data[2:])), true
		case m.Header.Level == unix.SOL_IPV6 && m.Header.Type == unix.IPV6_ORIGDSTADDR && len(m.Data) >= 24:
			return netip.AddrPortFrom(netip.AddrFrom16([16]byte(m.Data[8:])), binary.BigEndian.Uint16(m.Data[2:])), true
		}
	}
	return netip.AddrPort{}, false
}

// reply gives a program a datagram from the address it had sent to. It never
// blocks: a datagram may be lost.
func (p *packets) reply(d wire.Datagram) {
	if p == nil || len(d.Payload) > maxDatagram-udpHeader {
		return
	}
	p.send(d.Destination.Addr(), d.Source.Addr(), unix.IPPROTO_UDP, datagram(d.Destination, d.Source, d.Payload))
}

// refuse tells a program that nothing listens there: its next call ends with
// ECONNREFUSED (udp(7)).
func (p *packets) refuse(source, destination netip.AddrPort) {
	if p == nil {
		return
	}
	from, to := destination.Addr(), source.Addr()
	// The message quotes the beginning of the datagram (RFC 792, RFC 4443).
	sent := datagram(source, destination, nil)
	protocol, kind, code := byte(unix.IPPROTO_ICMP), byte(3), byte(3)
	if from.Is6() {
		protocol, kind, code = unix.IPPROTO_ICMPV6, 1, 4
	}
	message := append([]byte{kind, code, 0, 0, 0, 0, 0, 0}, packet(to, from, unix.IPPROTO_UDP, sent)...)
	sum := checksum(0, message)
	if from.Is6() {
		sum = checksum(pseudo(from, to, protocol, len(message)), message)
	}
	binary.BigEndian.PutUint16(message[2:], sum)
	p.send(from, to, protocol, message)
}

func (p *packets) send(from, to netip.Addr, protocol byte, payload []byte) {
	whole := packet(from, to, protocol, payload)
	if from.Is4() != to.Is4() || len(whole) > maxDatagram {
		return
	}
	if from.Is4() {
		_ = unix.Sendto(p.out4, whole, unix.MSG_DONTWAIT, &unix.SockaddrInet4{Addr: to.As4()})
		return
	}
	_ = unix.Sendto(p.out6, whole, unix.MSG_DONTWAIT, &unix.SockaddrInet6{Addr: to.As16()})
}

const udpHeader = 8

// datagram is UDP with its header (RFC 768).
func datagram(from, to netip.AddrPort, payload []byte) []byte {
	d := make([]byte, udpHeader, udpHeader+len(payload))
	binary.BigEndian.PutUint16(d[0:], from.Port())
	binary.BigEndian.PutUint16(d[2:], to.Port())
	binary.BigEndian.PutUint16(d[4:], uint16(udpHeader+len(payload)))
	d = append(d, payload...)
	sum := checksum(pseudo(from.Addr(), to.Addr(), unix.IPPROTO_UDP, len(d)), d)
	if sum == 0 {
		sum = 0xffff // zero means that there is none
	}
	binary.BigEndian.PutUint16(d[6:], sum)
	return d
}

// packet puts an IP header before payload (RFC 791, RFC 8200).
func packet(from, to netip.Addr, protocol byte, payload []byte) []byte {
	if from.Is4() {
		p := make([]byte, 20, 20+len(payload))
		p[0], p[8], p[9] = 4<<4|5, 64, protocol
		binary.BigEndian.PutUint16(p[2:], uint16(20+len(payload)))
		source, destination := from.As4(), to.As4()
		copy(p[12:], source[:])
		copy(p[16:], destination[:])
		binary.BigEndian.PutUint16(p[10:], checksum(0, p))
		return append(p, payload...)
	}
	p := make([]byte, 40, 40+len(payload))
	p[0], p[6], p[7] = 6<<4, protocol, 64
	binary.BigEndian.PutUint16(p[4:], uint16(len(payload)))
	source, destination := from.As16(), to.As16()
	copy(p[8:], source[:])
	copy(p[24:], destination[:])
	return append(p, payload...)
}

// pseudo is the sum of the pseudo-header that UDP and ICMPv6 add to their own.
func pseudo(from, to netip.Addr, protocol byte, length int) uint32 {
	sum := uint32(protocol) + uint32(length)
	for _, address := range [][]byte{from.AsSlice(), to.AsSlice()} {
		for i := 0; i < len(address); i += 2 {
			sum += uint32(binary.BigEndian.Uint16(address[i:]))
		}
	}
	return sum
}

// checksum is the internet checksum (RFC 1071), begun with sum.
func checksum(sum uint32, data []byte) uint16 {
	for ; len(data) >= 2; data = data[2:] {
		sum += uint32(binary.BigEndian.Uint16(data))
	}
	if len(data) > 0 {
		sum += uint32(data[0]) << 8
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

// senders briefly remembers which process sends from which address: finding out
// costs more than a datagram.
type senders struct {
	mu    sync.Mutex
	names map[netip.AddrPort]sender
}

type sender struct {
	name  string
	until time.Time
}

const (
	senderKeep = 5 * time.Second
	maxSenders = 256
)

func (s *senders) of(owners *owners, from netip.AddrPort) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if known, ok := s.names[from]; ok && now.Before(known.until) {
		return known.name
	}
	if len(s.names) >= maxSenders {
		clear(s.names)
	}
	name := owners.of("udp", from, netip.AddrPort{})
	s.names[from] = sender{name, now.Add(senderKeep)}
	return name
}
