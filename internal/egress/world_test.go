package egress_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/egress"
)

// world is a proxy between clients and servers on a loopback that poses as the
// internet: LookupHost and Dial are ours.
type world struct {
	t        testing.TB
	names    *egress.Names
	policy   atomic.Pointer[egress.Policy]
	seen     *egress.Observations
	proxy    *egress.Proxy
	ctx      context.Context
	cancel   context.CancelFunc
	listener *net.TCPListener
	handlers sync.WaitGroup

	mu      sync.Mutex
	hosts   map[string][]netip.Addr
	servers map[string]string // dialled address to real one
	dialled []string
}

// internet is the address where the servers of these tests pretend to be.
const internet = "93.184.215.14"

func newWorld(t testing.TB, options egress.Options, allow ...string) *world {
	t.Helper()
	names, err := egress.NewNames("")
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, names: names, seen: egress.NewObservations(0), hosts: map[string][]netip.Addr{}, servers: map[string]string{}}
	w.allow(allow...)
	w.ctx, w.cancel = context.WithCancel(t.Context())
	options.Policy, options.Names, options.Observe = w.policy.Load, names, w.seen.Add
	if options.Dial == nil {
		options.Dial = w.dial
	}
	if options.LookupHost == nil {
		options.LookupHost = w.lookup
	}
	if options.Surroundings == nil {
		options.Surroundings = func() egress.Surroundings {
			return egress.Surroundings{Own: []netip.Prefix{netip.MustParsePrefix("93.184.215.200/32")}}
		}
	}
	w.proxy = egress.New(options)
	if w.listener, err = net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.cancel()
		w.handlers.Wait() // nothing may be left behind
		if open := w.proxy.Connections(); open != 0 {
			t.Errorf("%d connections were never given back", open)
		}
		if err := w.listener.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *world) allow(texts ...string) {
	w.policy.Store(&egress.Policy{Default: egress.Deny, Allow: rules(w.t, texts...)})
}

func (w *world) lookup(_ context.Context, host string) ([]netip.Addr, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	addrs, ok := w.hosts[host]
	if !ok {
		return nil, fmt.Errorf("no such host %q", host)
	}
	return addrs, nil
}

func (w *world) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	w.mu.Lock()
	w.dialled = append(w.dialled, addr)
	real, ok := w.servers[addr]
	w.mu.Unlock()
	switch {
	case !ok:
		return nil, syscall.ECONNREFUSED
	case real == "nowhere": // packets vanish
		<-ctx.Done()
		return nil, ctx.Err()
	}
	var d net.Dialer
	return d.DialContext(ctx, network, real)
}

func (w *world) dials() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.dialled...)
}

// host makes name resolve to addrs.
func (w *world) host(name string, addrs ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hosts[name] = nil
	for _, text := range addrs {
		w.hosts[name] = append(w.hosts[name], netip.MustParseAddr(text))
	}
}

// place puts a server at an address of the pretended internet.
func (w *world) place(addr string, real net.Addr) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.servers[addr] = real.String()
}

// serve places a server that handles each connection with f.
func (w *world) serve(addr string, f func(*net.TCPConn)) {
	w.t.Helper()
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		w.t.Fatal(err)
	}
	w.place(addr, l.Addr())
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := l.AcceptTCP()
			if err != nil {
				return
			}
			running.Go(func() {
				defer conn.Close()
				f(conn)
			})
		}
	})
	w.t.Cleanup(func() { // before the world's own
		w.cancel()
		_ = l.Close()
		running.Wait()
	})
}

// open connects as a program in the sandbox would.
func (w *world) open(dst netip.AddrPort) *net.TCPConn {
	w.t.Helper()
	w.mu.Lock()
	client, err := net.DialTCP("tcp", nil, w.listener.Addr().(*net.TCPAddr))
	if err != nil {
		w.mu.Unlock()
		w.t.Fatal(err)
	}
	server, err := w.listener.AcceptTCP()
	w.mu.Unlock()
	if err != nil {
		w.t.Fatal(err)
	}
	w.handlers.Go(func() { w.proxy.Handle(w.ctx, server, dst, "test") })
	w.t.Cleanup(func() { _ = client.Close() })
	if err := client.SetDeadline(time.Now().Add(time.Minute)); err != nil { // a hang is a failure
		w.t.Fatal(err)
	}
	return client
}

func (w *world) openName(name string, port uint16) *net.TCPConn {
	w.t.Helper()
	v4, v6, err := w.names.Of(name)
	if err != nil {
		w.t.Fatal(err)
	}
	if port%2 == 0 { // both families stand for the name
		v4 = v6
	}
	return w.open(netip.AddrPortFrom(v4, port))
}

// client is an HTTP client without proxy settings that lives in the sandbox.
func (w *world) client(server *httptest.Server) *http.Client {
	transport := server.Client().Transport.(*http.Transport).Clone()
	transport.DialContext = func(_ context.Context, _, addr string) (net.Conn, error) {
		host, port, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, err
		}
		number, err := net.LookupPort("tcp", port)
		if err != nil {
			return nil, err
		}
		return w.openName(host, uint16(number)), nil
	}
	w.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// refused requires that c was reset and that nothing was dialled since before,
// and returns the reason.
func (w *world) refused(c *net.TCPConn) string {
	w.t.Helper()
	data, err := io.ReadAll(c)
	if !errors.Is(err, syscall.ECONNRESET) {
		w.t.Errorf("instead of a reset came %q, %v", data, err)
	}
	return w.why(egress.Denied)
}

// refuses sends text and returns the reason of the refusal. Only the first
// call learns of the reset.
func (w *world) refuses(c *net.TCPConn, text string) string {
	w.t.Helper()
	if text == "" {
		return w.refused(c)
	}
	_, err := io.WriteString(c, text)
	switch {
	case err == nil:
		return w.refused(c)
	case !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE):
		w.t.Fatal(err)
	}
	return w.why(egress.Denied)
}

// why returns the reason of the newest observation with a verdict. The report
// may come just after the reset.
func (w *world) why(verdict string) string {
	w.t.Helper()
	sub, stop := w.seen.Subscribe(64)
	defer stop()
	for {
		var newest egress.Observation
		for _, o := range w.seen.Snapshot() {
			if o.Verdict == verdict && !o.Last.Before(newest.Last) {
				newest = o
			}
		}
		if newest.Why != "" {
			return newest.Why
		}
		select {
		case <-sub:
		case <-time.After(time.Minute):
			w.t.Fatalf("nothing was observed as %s", verdict)
		}
	}
}

func wantWhy(t testing.TB, why, part string) {
	t.Helper()
	if !strings.Contains(why, part) {
		t.Errorf("the reason was %q, want one with %q", why, part)
	}
}

func write(t testing.TB, c net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
}

// readUntil reads until text ends in mark.
func readUntil(t testing.TB, c net.Conn, mark string) string {
	t.Helper()
	var b strings.Builder
	one := make([]byte, 1)
	for !strings.HasSuffix(b.String(), mark) {
		if _, err := io.ReadFull(c, one); err != nil {
			t.Fatalf("after %q came %v", b.String(), err)
		}
		b.Write(one)
	}
	return b.String()
}

func echo(c *net.TCPConn) {
	if _, err := io.Copy(c, c); err == nil {
		_ = c.CloseWrite()
	}
}
