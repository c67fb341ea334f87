package network_test

import (
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/litterbox-sandbox/litterbox/test/program"
)

// udpServer answers each datagram with itself, and counts them.
type udpServer struct {
	net.PacketConn
	visits atomic.Int64
}

func serveDatagrams(t *testing.T, address string) *udpServer {
	t.Helper()
	conn, err := net.ListenPacket("udp", net.JoinHostPort(address, "0"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	s := &udpServer{PacketConn: conn}
	go func() {
		buffer := make([]byte, 65536)
		for {
			n, from, err := conn.ReadFrom(buffer)
			if err != nil {
				return // closed
			}
			s.visits.Add(1)
			_, _ = conn.WriteTo(append([]byte("echo "), buffer[:n]...), from)
		}
	}()
	return s
}

// speak is a program that sends from a connected and from an unconnected
// socket, and says what came from where. Its last argument is the largest packet
// that IPv6 may send, so that larger ones go in fragments; 0 is that of the route.
const speak = `
import socket, sys
host, port, size, mtu = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
family = socket.AF_INET6 if ":" in host else socket.AF_INET
for connected in (True, False):
    s = socket.socket(family, socket.SOCK_DGRAM)
    s.settimeout(20)
    if mtu:
        s.setsockopt(socket.IPPROTO_IPV6, 24, mtu) # IPV6_MTU
    for n in range(3):
        payload = bytes([n]) * size
        try:
            if connected:
                s.connect((host, port))
                s.send(payload)
            else:
                s.sendto(payload, (host, port))
            got, source = s.recvfrom(65536)
        except OSError as e:
            print("refused" if e.errno == 111 else repr(e))
            sys.exit(1)
        assert got == b"echo " + payload, got
        assert source[:2] == (host, port), source
print("answered")
`

func speakTo(h *program.Host, s net.PacketConn, size string) program.Result {
	host, port, _ := net.SplitHostPort(s.LocalAddr().String())
	return h.Inside("box", "python3", "-c", speak, host, port, size, "0")
}

// speakInFragments is speakTo with packets of at most 1280 bytes, the least that IPv6
// allows (RFC 8200, section 5). Only the first fragment has the port that rules are about.
func speakInFragments(h *program.Host, s net.PacketConn, size string) program.Result {
	host, port, _ := net.SplitHostPort(s.LocalAddr().String())
	return h.Inside("box", "python3", "-c", speak, host, port, size, "1280")
}

func TestDatagrams(t *testing.T) {
	h := built.New(t)
	four, six, other := serveDatagrams(t, address4), serveDatagrams(t, address6), serveDatagrams(t, address4)
	h.Must("create", "box")
	for _, s := range []*udpServer{four, six} {
		if got := speakTo(h, s, "5"); got.Stdout != "refused\n" {
			t.Errorf("%s is not allowed: %d %s%s", s.LocalAddr(), got.Code, got.Stdout, got.Stderr)
		}
	}
	if got := speakInFragments(h, six, "60000"); got.Stdout != "refused\n" {
		t.Errorf("fragments that are not allowed: %d %s%s", got.Code, got.Stdout, got.Stderr)
	}
	// A rule about TCP opens nothing.
	h.Must("allow", "box", four.LocalAddr().String(), six.LocalAddr().String())
	if got := speakTo(h, four, "5"); got.Stdout != "refused\n" {
		t.Errorf("only TCP is allowed: %d %s%s", got.Code, got.Stdout, got.Stderr)
	}
	if n := four.visits.Load() + six.visits.Load(); n != 0 {
		t.Errorf("%d datagrams arrived", n)
	}
	h.Must("allow", "box", "udp://"+four.LocalAddr().String(), "udp://"+six.LocalAddr().String())
	for _, s := range []*udpServer{four, six} {
		for _, size := range []string{"1", "1400", "60000"} {
			if got := speakTo(h, s, size); got.Stdout != "answered\n" {
				t.Errorf("%s with %s bytes: %d %s%s", s.LocalAddr(), size, got.Code, got.Stdout, got.Stderr)
			}
		}
	}
	if got := speakInFragments(h, six, "60000"); got.Stdout != "answered\n" {
		t.Errorf("in fragments: %d %s%s", got.Code, got.Stdout, got.Stderr)
	}
	if got := speakTo(h, other, "5"); got.Stdout != "refused\n" || other.visits.Load() != 0 {
		t.Errorf("another port: %d %s%s", got.Code, got.Stdout, got.Stderr)
	}
	found := map[string]bool{}
	for _, seen := range network(t, h).Seen {
		found[seen.Verdict+" "+seen.Rule] = true
		if !strings.HasPrefix(seen.Process, "python3 (") {
			t.Errorf("recorded as %+v", seen)
		}
	}
	for _, want := range []string{"allowed udp://" + four.LocalAddr().String(), "allowed udp://" + six.LocalAddr().String(), "denied "} {
		if !found[want] {
			t.Errorf("nothing is recorded as %q: %v", want, found)
		}
	}
	h.Must("deny", "box", "udp://"+address4+":*")
	if got := speakTo(h, four, "5"); got.Stdout != "refused\n" {
		t.Errorf("after the deny: %d %s%s", got.Code, got.Stdout, got.Stderr)
	}
}

// A program may serve a port inside that it also sends to outside; traffic
// that stays inside does not concern the keeper.
func TestDatagramsInside(t *testing.T) {
	h := built.New(t)
	s := serveDatagrams(t, address4)
	h.Must("create", "box")
	h.Must("allow", "box", "udp://"+s.LocalAddr().String())
	script := `
import socket, sys
host, port = sys.argv[1], int(sys.argv[2])
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("0.0.0.0", port))
server.settimeout(20)
for own in ("127.0.0.1", "100.64.0.1"):
    c = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    c.settimeout(20)
    c.sendto(b"inside", (own, port))
    data, source = server.recvfrom(100)
    assert data == b"inside", data
    server.sendto(b"back", source)
    assert c.recv(100) == b"back"
c = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
c.settimeout(20)
c.sendto(b"out", (host, port))
assert c.recv(100) == b"echo out"
# From the very port of the server, too.
server.sendto(b"same port", (host, port))
assert server.recv(100) == b"echo same port"
print("kept")
`
	host, port, _ := net.SplitHostPort(s.LocalAddr().String())
	if got := h.Inside("box", "python3", "-c", script, host, port); got.Stdout != "kept\n" {
		t.Errorf("%d %s%s", got.Code, got.Stdout, got.Stderr)
	}
	for _, seen := range network(t, h).Seen {
		if seen.Verdict != "allowed" {
			t.Errorf("recorded as %+v", seen)
		}
	}
}
