package egress

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// Intake is the sandbox's only way out: every connection that a program makes
// arrives here (the kernel redirects it) and is passed on, with its original
// destination, to the keeper, which decides. DNS messages go the same way. The
// guest decides nothing; without a keeper everything is refused.
type Intake struct {
	keeper  atomic.Pointer[wire.Egress]
	next    atomic.Uint64
	mu      sync.Mutex
	waiting map[uint64]chan []byte // DNS queries by id
	held    held                   // those announced
	Owners  owners
	packets *packets // nil without datagrams; set before the first keeper
}

// maxQueries bounds how much a flood of DNS queries can hold here.
const maxQueries = 1024

// queryTimeout is how long a query waits for the keeper, which answers at
// once or not at all.
const queryTimeout = 5 * time.Second

// Start opens the guest's two ports on both families. A sandbox without a
// network setup (no nftables) refuses everything by itself.
func Start(sockets *Diag) (*Intake, error) {
	e := &Intake{waiting: map[uint64]chan []byte{}, held: newHeld()}
	e.Owners.Sockets = sockets
	for _, host := range []string{"127.0.0.1", "::1"} {
		ip := net.ParseIP(host)
		connections, err := net.ListenTCP("tcp", &net.TCPAddr{IP: ip, Port: ConnectionPort})
		if err != nil {
			return nil, err
		}
		queries, err := net.ListenUDP("udp", &net.UDPAddr{IP: ip, Port: ResolverPort})
		if err != nil {
			return nil, err
		}
		streams, err := net.ListenTCP("tcp", &net.TCPAddr{IP: ip, Port: ResolverPort})
		if err != nil {
			return nil, err
		}
		go accept(connections, e.pass)
		go accept(streams, e.serveStream)
		go e.serveDatagrams(queries)
	}
	return e, nil
}

// Take makes link the way to the keeper, in place of an earlier one.
func (e *Intake) Take(link *wire.Egress) { e.keeper.Store(link) }

// Serve listens to a keeper that was taken, until its connection ends.
func (e *Intake) Serve(link *wire.Egress) {
	for {
		received, err := link.Receive()
		if err != nil {
			break
		}
		switch received.Kind {
		case wire.KindAnswer:
			e.mu.Lock()
			waiter := e.waiting[received.Query.ID]
			delete(e.waiting, received.Query.ID)
			e.mu.Unlock()
			if waiter != nil {
				waiter <- received.Query.Message // buffered
			}
		case wire.KindDeclined:
			e.held.drop(received.ID)
		case wire.KindDatagram:
			e.packets.reply(received.Datagram)
		case wire.KindUnreachable:
			e.packets.refuse(received.Datagram.Source, received.Datagram.Destination)
		}
	}
	e.keeper.CompareAndSwap(link, nil)
	link.Close()
	e.held.dropAll(link)
}

// accept serves connections, a bounded number at once: the rest wait in the
// kernel. A flood must leave descriptors for the commands that the guest starts.
func accept(listener *net.TCPListener, serve func(*net.TCPConn)) {
	places := make(chan struct{}, atOnce())
	for {
		conn, err := listener.AcceptTCP()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			time.Sleep(10 * time.Millisecond) // out of descriptors: some come free
			continue
		}
		places <- struct{}{}
		go func() {
			defer func() { <-places }()
			serve(conn)
		}()
	}
}

// atOnce is how many connections each of the guest's four TCP listeners may
// hold: half of its descriptors in all, where it has few.
func atOnce() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil || limit.Cur > 2048 {
		return 256
	}
	return max(1, int(limit.Cur)/8)
}

// pass hands a connection to the keeper. One that cannot be handed on is reset
// at once, so that the program sees a refusal and does not hang.
func (e *Intake) pass(conn *net.TCPConn) {
	destination, ok := originalDestination(conn)
	keeper := e.keeper.Load()
	if !ok || keeper == nil {
		reset(conn)
		return
	}
	who := ""
	if from, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
		who = e.Owners.of("tcp", from.AddrPort(), destination)
	}
	c := wire.Connection{Destination: destination, Process: who}
	if !keeper.Passes() {
		e.announce(keeper, conn, c)
		return
	}
	if err := keeper.SendConnection(conn, c); err != nil {
		reset(conn)
	}
	_ = conn.Close() // the keeper has its own descriptor by then
}

// reset ends a connection so that the program sees a refusal.
func reset(conn *net.TCPConn) {
	_ = conn.SetLinger(0) // fails only on a dead socket
	_ = conn.Close()
}

// originalDestination asks connection tracking where a redirected connection
// was going (SO_ORIGINAL_DST, linux/netfilter_ipv4.h). A connection made to our
// port directly has no answer, and no way out.
func originalDestination(conn *net.TCPConn) (netip.AddrPort, bool) {
	local, ok := conn.LocalAddr().(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}, false
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return netip.AddrPort{}, false
	}
	const soOriginalDst = 80
	var address netip.AddrPort
	found := false
	_ = raw.Control(func(fd uintptr) {
		if local.IP.To4() != nil {
			var sa unix.RawSockaddrInet4
			size := uint32(unsafe.Sizeof(sa))
			_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, fd, unix.SOL_IP, soOriginalDst,
				uintptr(unsafe.Pointer(&sa)), uintptr(unsafe.Pointer(&size)), 0)
			port := (*[2]byte)(unsafe.Pointer(&sa.Port))
			address, found = netip.AddrPortFrom(netip.AddrFrom4(sa.Addr), binary.BigEndian.Uint16(port[:])), errno == 0
			return
		}
		var sa unix.RawSockaddrInet6
		size := uint32(unsafe.Sizeof(sa))
		_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, fd, unix.SOL_IPV6, soOriginalDst,
			uintptr(unsafe.Pointer(&sa)), uintptr(unsafe.Pointer(&size)), 0)
		port := (*[2]byte)(unsafe.Pointer(&sa.Port))
		address, found = netip.AddrPortFrom(netip.AddrFrom16(sa.Addr).Unmap(), binary.BigEndian.Uint16(port[:])), errno == 0
	})
	self := netip.AddrPortFrom(conn.LocalAddr().(*net.TCPAddr).AddrPort().Addr().Unmap(), ConnectionPort)
	return address, found && address != self
}

// ask sends one DNS message to the keeper and waits for its answer.
func (e *Intake) ask(message []byte, tcp bool) []byte {
	keeper := e.keeper.Load()
	if keeper == nil {
		return nil
	}
	answer := make(chan []byte, 1)
	id := e.next.Add(1)
	e.mu.Lock()
	full := len(e.waiting) >= maxQueries
	if !full {
		e.waiting[id] = answer
	}
	e.mu.Unlock()
	if full {
		return nil
	}
	defer func() {
		e.mu.Lock()
		delete(e.waiting, id)
		e.mu.Unlock()
	}()
	if keeper.SendQuery(wire.Query{ID: id, TCP: tcp, Message: message}) != nil {
		return nil
	}
	select {
	case reply := <-answer:
		return reply
	case <-time.After(queryTimeout):
		return nil
	}
}

// serveDatagrams answers DNS over UDP. Connection tracking gives the reply the
// address of the server that the program asked.
func (e *Intake) serveDatagrams(conn *net.UDPConn) {
	buffer := make([]byte, 4096)
	slots := make(chan struct{}, maxQueries)
	for {
		n, from, err := conn.ReadFromUDPAddrPort(buffer)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		message := append([]byte(nil), buffer[:n]...)
		select {
		case slots <- struct{}{}:
		default:
			continue // a flood: DNS clients ask again
		}
		go func() {
			defer func() { <-slots }()
			if answer := e.ask(message, false); len(answer) > 0 {
				_, _ = conn.WriteToUDPAddrPort(answer, from)
			}
		}()
	}
}

// serveStream answers DNS over TCP (RFC 7766): messages prefixed by their length.
func (e *Intake) serveStream(conn *net.TCPConn) {
	defer conn.Close()
	for {
		_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
		var size [2]byte
		if _, err := io.ReadFull(conn, size[:]); err != nil {
			return
		}
		message := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(conn, message); err != nil {
			return
		}
		answer := e.ask(message, true)
		if len(answer) == 0 || len(answer) > 65535 {
			return
		}
		if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...)); err != nil {
			return
		}
	}
}
