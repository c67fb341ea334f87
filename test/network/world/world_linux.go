// Package world makes a small internet for tests: a network namespace with hosts,
// names and servers of the test's own, beside the namespace of the machine on which
// litterbox runs, joined by one cable. Nothing in it leads to the real network, so
// that a leaking sandbox would do no harm, and arriving traffic can be counted.
//
// It deliberately knows nothing of litterbox: the machine has a resolver in
// its /etc/resolv.conf and a default route, and that is all. Start reading at
// [Main].
package world

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// World is the internet of one test binary, and what belongs to it on the
// machine.
type World struct {
	Dir   string // the directory of the world's own files; world-readable
	CA    string // the authority of every certificate in the world, a PEM file in Dir
	Names *Names // the answers of its resolvers

	place     *place
	authority *authority

	mu   sync.Mutex
	next int
}

// The machine's own addresses, and the other end of its cable: a router with
// public addresses that is the machine's neighbour.
const (
	Machine4 = "203.0.113.2"
	Machine6 = "2001:db8:113::2"
	Router4  = "203.0.113.1"
	Router6  = "2001:db8:113::1"
)

// The hosts of the world have addresses from these ranges, which are reserved
// for documentation (RFC 5737, RFC 3849) and count as public.
const (
	hosts4 = "198.51.100.0/24"
	hosts6 = "2001:db8:51::/64"
	nat64  = "64:ff9b::/96" // a gateway that translates (RFC 6052)
)

// Resolver is the resolver that the machine uses; Others are resolvers that
// programs know by heart.
const Resolver = "9.9.9.9"

// Others are addresses that mean something on the real internet, or in a
// machine's own network. In the world they are hosts like any other.
func Others() []string {
	return []string{"8.8.8.8", "1.1.1.1", Metadata, Private, "2001:4860:4860::8888"}
}

// Translated returns the address under which the gateway of the world reaches
// an IPv4 address.
func Translated(addr string) string {
	inner := netip.MustParseAddr(addr).As4()
	outer := netip.MustParsePrefix(nat64).Addr().As16()
	copy(outer[12:], inner[:])
	return netip.AddrFrom16(outer).String()
}

// Metadata is the address where clouds hand out credentials, and Private a
// host of the machine's own network.
const (
	Metadata = "169.254.169.254"
	Private  = "10.99.0.7"
)

// Host is one host of the world, with an address for each family.
type Host struct {
	Name   string
	V4, V6 netip.Addr
	world  *World
}

// Host makes a host and its name.
func (w *World) Host(name string) *Host {
	w.mu.Lock()
	w.next++
	number := w.next
	w.mu.Unlock()
	h := &Host{Name: name, world: w}
	h.V4 = netip.MustParsePrefix(hosts4).Addr()
	bytes4, bytes6 := h.V4.As4(), netip.MustParsePrefix(hosts6).Addr().As16()
	bytes4[3], bytes6[15] = byte(number), byte(number)
	h.V4, h.V6 = netip.AddrFrom4(bytes4), netip.AddrFrom16(bytes6)
	w.Names.Set(name, h.V4, h.V6)
	return h
}

// Certificate returns one for names, signed by the world's authority.
func (w *World) Certificate(names ...string) (tls.Certificate, error) {
	return w.authority.certificate(names)
}

// Listen opens a port of the host for each family.
func (h *Host) Listen(t testing.TB, port int) []net.Listener {
	t.Helper()
	var all []net.Listener
	for _, addr := range []netip.Addr{h.V4, h.V6} {
		all = append(all, h.world.Listen(t, netip.AddrPortFrom(addr, uint16(port)).String()))
	}
	return all
}

// Listen opens a port of any address of the world.
func (w *World) Listen(t testing.TB, address string) net.Listener {
	t.Helper()
	var listener net.Listener
	err := w.place.do(func() (err error) {
		listener, err = net.Listen("tcp", address)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}

// ListenPacket is Listen for UDP.
func (w *World) ListenPacket(t testing.TB, address string) net.PacketConn {
	t.Helper()
	var conn net.PacketConn
	err := w.place.do(func() (err error) {
		conn, err = net.ListenPacket("udp", address)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// Serve handles every connection of the host's port with f.
func (h *Host) Serve(t testing.TB, port int, f func(net.Conn)) {
	t.Helper()
	for _, listener := range h.Listen(t, port) {
		go Accept(listener, f)
	}
}

// Accept handles connections until the listener is closed.
func Accept(listener net.Listener, f func(net.Conn)) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			f(conn)
		}()
	}
}

// Need looks for programs and skips the test without them. Where
// LITTERBOX_TEST_REQUIRE (comma-separated) names one, the test fails instead:
// a skip would be an empty success.
func Need(t testing.TB, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := Find(name); err == nil {
			continue
		}
		if slices.Contains(strings.Split(os.Getenv("LITTERBOX_TEST_REQUIRE"), ","), name) {
			t.Fatalf("%s is not installed, and LITTERBOX_TEST_REQUIRE demands it", name)
		}
		t.Skipf("%s is not installed", name)
	}
}

// Find returns the path of a program. Servers are outside the user's PATH.
func Find(name string) (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil {
		return "", err
	}
	slices.Reverse(found) // the newest
	for _, dir := range slices.Concat([]string{"/usr/bin", "/usr/sbin", "/bin", "/sbin"}, filepath.SplitList(os.Getenv("PATH")), found) {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", fmt.Errorf("cannot find %s", name)
}
