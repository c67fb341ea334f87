package egress_test

import (
	"bytes"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/egress"
)

// inside is the sandbox's end of its datagrams.
type inside struct {
	replies chan string
	refused chan netip.AddrPort
}

func newInside() *inside {
	return &inside{replies: make(chan string, 1024), refused: make(chan netip.AddrPort, 1024)}
}

func (i *inside) Reply(_, destination netip.AddrPort, payload []byte) {
	i.replies <- destination.String() + " " + string(payload)
}

func (i *inside) Refuse(_, destination netip.AddrPort) { i.refused <- destination }

// echoDatagrams places a server that answers each datagram with itself.
func (w *world) echoDatagrams(addr string) *net.UDPConn {
	w.t.Helper()
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		w.t.Fatal(err)
	}
	w.place(addr, conn.LocalAddr())
	var running sync.WaitGroup
	running.Go(func() {
		buffer := make([]byte, 65536)
		for {
			n, from, err := conn.ReadFromUDPAddrPort(buffer)
			if err != nil {
				return
			}
			_, _ = conn.WriteToUDPAddrPort(buffer[:n], from)
		}
	})
	w.t.Cleanup(func() {
		_ = conn.Close()
		running.Wait()
	})
	return conn
}

func (w *world) named(host string, port uint16) netip.AddrPort {
	w.t.Helper()
	v4, _, err := w.names.Of(host)
	if err != nil {
		w.t.Fatal(err)
	}
	return netip.AddrPortFrom(v4, port)
}

func (w *world) send(i *inside, source uint16, to netip.AddrPort, payload string) {
	w.proxy.Datagram(w.ctx, netip.AddrPortFrom(to.Addr(), source), to, "test", []byte(payload), i)
}

func next[T any](t testing.TB, from <-chan T) T {
	t.Helper()
	select {
	case one := <-from:
		return one
	case <-time.After(time.Minute):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}

func TestDatagrams(t *testing.T) {
	w := newWorld(t, egress.Options{}, "udp://time.example:123", "udp://"+internet+":53053", "other.example")
	w.host("time.example", internet)
	w.host("other.example", internet)
	w.echoDatagrams(internet + ":123")
	w.echoDatagrams(internet + ":53053")
	i := newInside()
	clock, other := w.named("time.example", 123), w.named("other.example", 443)
	address := netip.MustParseAddrPort(internet + ":53053")
	for n, to := range []netip.AddrPort{clock, address, clock} {
		w.send(i, uint16(40000+n), to, "hello")
		if got := next(t, i.replies); got != to.String()+" hello" {
			t.Errorf("the answer was %q", got)
		}
	}
	big := string(bytes.Repeat([]byte("x"), 65000))
	w.send(i, 40000, clock, big)
	if got := next(t, i.replies); got != clock.String()+" "+big {
		t.Errorf("the answer to a large one has %d bytes", len(got))
	}
	for to, why := range map[netip.AddrPort]string{
		other:                        "does not cover UDP",
		w.named("time.example", 124): "does not cover port 124",
		netip.MustParseAddrPort("198.18.200.1:123"): "no name was looked up",
		netip.MustParseAddrPort(internet + ":443"):  "no rule allows",
	} {
		w.send(i, 40000, to, "hello")
		if got := next(t, i.refused); got != to {
			t.Errorf("%v was refused instead of %v", got, to)
		}
		wantWhy(t, w.why(egress.Denied), why)
	}
	if len(i.replies) > 0 {
		t.Errorf("somebody answered: %q", <-i.replies)
	}
}

func TestDatagramsToPrivateAddresses(t *testing.T) {
	w := newWorld(t, egress.Options{}, "udp://time.example:123", "10.1.2.3:123")
	w.host("time.example", "10.1.2.3")
	i := newInside()
	to := w.named("time.example", 123)
	w.send(i, 40000, to, "hello")
	if next(t, i.refused) != to || len(w.dials()) != 0 {
		t.Errorf("dialled %v", w.dials())
	}
	wantWhy(t, w.why(egress.Denied), "allow udp://10.1.2.3:123 too")
}

// An answer of a closed port comes through, and a new revision ends exchanges
// that it forbids.
func TestDatagramsEnd(t *testing.T) {
	w := newWorld(t, egress.Options{}, "udp://time.example:123", "udp://closed.example:123")
	w.host("time.example", internet)
	w.host("closed.example", "93.184.215.15")
	w.echoDatagrams(internet + ":123")
	closed := w.echoDatagrams("93.184.215.15:123")
	_ = closed.Close()
	i := newInside()
	w.send(i, 40000, w.named("closed.example", 123), "hello")
	if got := next(t, i.refused); got != w.named("closed.example", 123) {
		t.Errorf("%v was refused", got)
	}
	to := w.named("time.example", 123)
	w.send(i, 40000, to, "hello")
	next(t, i.replies)
	w.proxy.Report()
	found := false
	for _, o := range w.seen.Snapshot() {
		found = found || o.Host == "time.example" && o.BytesIn == 5 && o.BytesOut == 5 && o.Count == 1
	}
	if !found {
		t.Errorf("the bytes are not seen while it lives: %+v", w.seen.Snapshot())
	}
	w.allow()
	w.proxy.Recheck()
	untilRefused := func() {
		for next(t, i.refused) != to { // the closed port may say so twice
		}
	}
	untilRefused()
	w.send(i, 40000, to, "hello")
	untilRefused()
}

// A flood of senders holds a bounded amount.
func TestDatagramsAreBounded(t *testing.T) {
	w := newWorld(t, egress.Options{DatagramTimeout: time.Hour}, "udp://time.example:123")
	w.host("time.example", internet)
	w.echoDatagrams(internet + ":123")
	i := newInside()
	to := w.named("time.example", 123)
	for n := range 513 {
		w.send(i, uint16(20000+n), to, "hello")
	}
	if got := next(t, i.refused); got != to {
		t.Errorf("%v was refused", got)
	}
	wantWhy(t, w.why(egress.Denied), "512")
}

// Silent exchanges go, and make room.
func TestSilentDatagramsGo(t *testing.T) {
	w := newWorld(t, egress.Options{DatagramTimeout: time.Second}, "udp://time.example:123")
	w.host("time.example", internet)
	w.echoDatagrams(internet + ":123")
	i := newInside()
	to := w.named("time.example", 123)
	for n := range 512 {
		w.send(i, uint16(20000+n), to, "hello")
	}
	for deadline := time.Now().Add(time.Minute); ; {
		w.send(i, 40000, to, "again")
		select {
		case got := <-i.replies:
			if got == to.String()+" again" {
				return
			}
		case <-i.refused:
		case <-time.After(100 * time.Millisecond): // a datagram may be lost
		}
		if time.Now().After(deadline) {
			t.Fatal("there is never room again")
		}
	}
}
