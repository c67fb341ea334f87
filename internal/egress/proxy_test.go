package egress_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/egress"
)

func TestServerSpeaksFirst(t *testing.T) {
	w := newWorld(t, egress.Options{}, "git.example:22")
	w.host("git.example", internet)
	w.serve(internet+":22", func(c *net.TCPConn) {
		write(t, c, "SSH-2.0-test\r\n")
		echo(c)
	})
	c := w.openName("git.example", 22)
	if got := readUntil(t, c, "\n"); got != "SSH-2.0-test\r\n" {
		t.Errorf("the server's first words were %q", got)
	}
	write(t, c, "hello")
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(c)
	if string(rest) != "hello" || err != nil {
		t.Errorf("after the half-close came %q, %v", rest, err)
	}
}

// The server ends its half first and still reads all that comes.
func TestHalfCloseOfServer(t *testing.T) {
	w := newWorld(t, egress.Options{}, "a.example:7")
	w.host("a.example", internet)
	got := make(chan string, 1)
	w.serve(internet+":7", func(c *net.TCPConn) {
		write(t, c, "done")
		if err := c.CloseWrite(); err != nil {
			t.Error(err)
		}
		rest, err := io.ReadAll(c)
		if err != nil {
			t.Error(err)
		}
		got <- string(rest)
	})
	c := w.openName("a.example", 7)
	if all, err := io.ReadAll(c); string(all) != "done" || err != nil {
		t.Errorf("the server said %q, %v", all, err)
	}
	write(t, c, "still here")
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if rest := <-got; rest != "still here" {
		t.Errorf("the server got %q", rest)
	}
}

func TestHalfOpenEnds(t *testing.T) {
	w := newWorld(t, egress.Options{HalfOpenTimeout: 50 * time.Millisecond}, "a.example:7")
	w.host("a.example", internet)
	w.serve(internet+":7", func(c *net.TCPConn) { _ = c.CloseWrite(); _, _ = io.Copy(io.Discard, c) })
	c := w.openName("a.example", 7)
	if _, err := io.Copy(io.Discard, c); err != nil {
		t.Fatal(err)
	}
	// The client never ends its own half, but its socket dies.
	w.handlers.Wait()
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		name, allow string
		dst         string // an address, or a name with a port
		resolves    string
		send, want  string
	}{
		{"no rule for the address", "a.example", internet + ":443", "", "", "no rule allows the address"},
		{"no rule for the name", "a.example", "b.example:443", internet, "", "no rule allows the host"},
		{"port", "a.example", "a.example:25", internet, "", "does not cover port 25"},
		{"address without a name", "a.example", "198.18.200.1:443", "", "", "no name was looked up"},
		{"private address", "0.0.0.0/0:*", "10.0.0.1:80", "", "", "a private network"},
		{"metadata", "0.0.0.0/0:*", "169.254.169.254:80", "", "", "metadata"},
		{"loopback", "0.0.0.0/0:*", "127.0.0.1:80", "", "", "loopback"},
		{"this machine", "0.0.0.0/0:*", "93.184.215.200:80", "", "", "this machine"},
		{"mapped private address", "::/0", "[::ffff:10.0.0.1]:80", "", "", "a private network"},
		{"name to private", "a.example:*", "a.example:5432", "10.0.0.1", "", "resolves to 10.0.0.1"},
		{"name to loopback", "a.example:*", "a.example:5432", "127.0.0.1", "", "loopback"},
		{"name to metadata", "a.example:*", "a.example:81", "169.254.169.254", "", "metadata"},
		{"name to IPv6 metadata", "a.example:*", "a.example:81", "fd00:ec2::254", "", "metadata"},
		{"name to mapped loopback", "a.example:*", "a.example:81", "::ffff:127.0.0.1", "", "loopback"},
		{"name to this machine", "a.example:*", "a.example:81", "93.184.215.200", "", "this machine"},
		{"name to carrier network", "a.example:*", "a.example:81", "100.64.1.1", "", "carrier"},
		{"name to link-local", "a.example:*", "a.example:81", "fe80::1", "", "link-local"},
		{"name to multicast", "a.example:*", "a.example:81", "224.0.0.1", "", "multicast"},
		{"name to our own range", "a.example:*", "a.example:81", "198.18.1.0", "", "names of sandboxes"},
		{"ssh on the web's port", "a.example", "a.example:443", internet, "SSH-2.0-x\r\n", "allow tcp://a.example:443"},
		{"binary on the web's port", "a.example", "a.example:443", internet, "\x00\x01\x02", "allow tcp://a.example:443"},
		{"other Host", "a.example", "a.example:80", internet, "GET / HTTP/1.1\r\nHost: b.example\r\n\r\n", `Host is "b.example"`},
		{"Host's port", "a.example", "a.example:80", internet, "GET / HTTP/1.1\r\nHost: a.example:81\r\n\r\n", "Host is"},
		{"Host as an address", "a.example", "a.example:80", internet, "GET / HTTP/1.1\r\nHost: 93.184.215.14\r\n\r\n", "Host is"},
		{"no Host", "a.example", "a.example:80", internet, "GET / HTTP/1.0\r\n\r\n", "no HTTP Host"},
		{"two Hosts", "a.example", "a.example:80", internet, "GET / HTTP/1.1\r\nHost: a.example\r\nHost: b.example\r\n\r\n", "more than one"},
		{"URL of another host", "a.example", "a.example:80", internet, "GET http://b.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n", "does not agree"},
		{"URL of this host", "a.example", "a.example:80", internet, "GET http://a.example/ HTTP/1.1\r\nHost: b.example\r\n\r\n", "does not agree"},
		{"URL with a user", "a.example", "a.example:80", internet, "GET http://a.example@b.example/ HTTP/1.1\r\nHost: a.example@b.example\r\n\r\n", "Host is"},
		{"CONNECT", "a.example", "a.example:80", internet, "CONNECT b.example:443 HTTP/1.1\r\nHost: a.example\r\n\r\n", "CONNECT"},
		{"length and chunks", "a.example", "a.example:80", internet, "POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n", "both a length and an encoding"},
		{"two lengths", "a.example", "a.example:80", internet, "POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 4\r\nContent-Length: 4\r\n\r\n", "no single plain length"},
		{"odd encoding", "a.example", "a.example:80", internet, "POST / HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: xchunked\r\n\r\n", "encoding other than"},
		{"encoding twice", "a.example", "a.example:80", internet, "POST / HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n", "encoding other than"},
		{"space before the colon", "a.example", "a.example:80", internet, "POST / HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding : chunked\r\n\r\n", "malformed line"},
		{"folded line", "a.example", "a.example:80", internet, "GET / HTTP/1.1\r\nHost: a.example\r\nX: a\r\n b\r\n\r\n", "malformed line"},
		{"bare line ends", "a.example", "a.example:80", internet, "GET / HTTP/1.1\nHost: b.example\n\r\n\r\n", "HTTP"},
		{"hidden Host", "a.example", "a.example:80", internet, "GET / HTTP/1.1\r\nHost: a.example\nHost: b.example\r\n\r\n", "bare line end"},
		{"length in Connection", "a.example", "a.example:80", internet, "POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 1\r\nConnection: content-length\r\n\r\n", "drop content-length"},
		{"method", "GET http://a.example", "a.example:80", internet, "POST / HTTP/1.1\r\nHost: a.example\r\n\r\n", "does not cover the request POST /"},
		{"path", "http://a.example/me", "a.example:80", internet, "GET /you HTTP/1.1\r\nHost: a.example\r\n\r\n", "does not cover the request GET /you"},
		{"HTTP/2 with path rules", "http://a.example/me", "a.example:80", internet, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "HTTP/2 without TLS"},
		{"endless head", "a.example", "a.example:80", internet, "GET / HTTP/1.1\r\nHost: a.example\r\nX: " + strings.Repeat("x", 40<<10), "longer than"},
		{"broken TLS", "a.example", "a.example:443", internet, "\x16\x03\x01\x00\x04\x02\x00\x00\x00", "ClientHello"},
		{"TLS with a huge record", "a.example", "a.example:443", internet, "\x16\x03\x01\xff\xff", "not"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, egress.Options{}, split(c.allow)...)
			var conn *net.TCPConn
			if dst, err := netip.ParseAddrPort(c.dst); err == nil {
				conn = w.open(dst)
			} else {
				name, port, err := egress.ParseDestination(c.dst)
				if err != nil {
					t.Fatal(err)
				}
				w.host(name, c.resolves)
				conn = w.openName(name, port)
			}
			wantWhy(t, w.refuses(conn, c.send), c.want)
			if dials := w.dials(); len(dials) > 0 {
				t.Errorf("%v was dialled", dials)
			}
		})
	}
}

// A name that resolves to several addresses is dialled only where it may be.
func TestRebinding(t *testing.T) {
	w := newWorld(t, egress.Options{}, "a.example:7", "b.example:7", "10.9.9.9:7")
	w.host("a.example", "127.0.0.1", internet, "169.254.169.254")
	w.host("b.example", "10.9.9.9")
	w.serve(internet+":7", echo)
	w.serve("10.9.9.9:7", echo)
	for _, name := range []string{"a.example", "b.example"} {
		c := w.openName(name, 7)
		write(t, c, "x")
		if got := readUntil(t, c, "x"); got != "x" {
			t.Errorf("%s said %q", name, got)
		}
	}
	if diff := cmp.Diff([]string{internet + ":7", "10.9.9.9:7"}, w.dials()); diff != "" {
		t.Errorf("dialled (-want +got):\n%s", diff)
	}
}

func TestHappyEyeballs(t *testing.T) {
	w := newWorld(t, egress.Options{}, "a.example:7")
	w.host("a.example", "2606:2800:21f::1", "2606:2800:21f::2", internet)
	w.serve(internet+":7", echo)
	w.mu.Lock()
	w.servers["[2606:2800:21f::1]:7"] = "nowhere"
	w.mu.Unlock()
	c := w.openName("a.example", 7)
	write(t, c, "x")
	readUntil(t, c, "x")
	// A slow machine may have tried the last one, too.
	dialled := w.dials()
	if diff := cmp.Diff([]string{"[2606:2800:21f::1]:7", internet + ":7"}, dialled[:min(2, len(dialled))]); diff != "" {
		t.Errorf("dialled (-want +got):\n%s", diff)
	}
}

func TestUnreachable(t *testing.T) {
	w := newWorld(t, egress.Options{}, "a.example:7", "gone.example:7")
	w.host("a.example", internet, "2606:2800:21f::1")
	for name, want := range map[string]string{"a.example": "connection refused", "gone.example": "no such host"} {
		c := w.openName(name, 7)
		if _, err := io.ReadAll(c); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("instead of a reset came %v", err)
		}
		found := false
		w.handlers.Wait()
		for _, o := range w.seen.Snapshot() {
			found = found || o.Host == name && o.Verdict == egress.Failed && strings.Contains(o.Why, want)
		}
		if !found {
			t.Errorf("%s: observed %+v", name, w.seen.Snapshot())
		}
	}
}

func TestSlowHeads(t *testing.T) {
	for name, send := range map[string]string{"silent": "", "slow HTTP": "GET / HTTP/1.1\r\nHo", "slow TLS": "\x16\x03\x01\x02\x00\x01"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, egress.Options{HeadTimeout: 300 * time.Millisecond}, "a.example")
			w.host("a.example", internet)
			wantWhy(t, w.refuses(w.openName("a.example", 443), send), "within 300ms")
		})
	}
}

// A program that connects ahead of time, and then does not use the connection,
// was denied nothing.
func TestUnusedConnections(t *testing.T) {
	for name, end := range map[string]func(*net.TCPConn) error{
		"closed": (*net.TCPConn).Close,
		"reset":  func(c *net.TCPConn) error { return errors.Join(c.SetLinger(0), c.Close()) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, egress.Options{}, "a.example")
			w.host("a.example", internet)
			if err := end(w.openName("a.example", 443)); err != nil {
				t.Fatal(err)
			}
			w.handlers.Wait()
			seen := w.seen.Snapshot()
			if len(seen) == 0 {
				t.Error("the connection was not seen; the test shows nothing")
			}
			for _, one := range seen {
				if one.Verdict != egress.Allowed {
					t.Errorf("%+v", one)
				}
			}
		})
	}
}

func TestAbortPassesOn(t *testing.T) {
	w := newWorld(t, egress.Options{}, "a.example:7")
	w.host("a.example", internet)
	got := make(chan error, 1)
	w.serve(internet+":7", func(c *net.TCPConn) {
		write(t, c, "x")
		_, err := io.ReadAll(c)
		got <- err
	})
	c := w.openName("a.example", 7)
	readUntil(t, c, "x")
	if err := errors.Join(c.SetLinger(0), c.Close()); err != nil {
		t.Fatal(err)
	}
	if err := <-got; !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the server saw %v", err)
	}
}

func TestRecheck(t *testing.T) {
	w := newWorld(t, egress.Options{}, "a.example:7", "b.example:7")
	w.host("a.example", internet)
	w.host("b.example", internet)
	w.serve(internet+":7", echo)
	a, b := w.openName("a.example", 7), w.openName("b.example", 7)
	for _, c := range []*net.TCPConn{a, b} {
		write(t, c, "x")
		readUntil(t, c, "x")
	}
	w.allow("b.example:7")
	w.proxy.Recheck()
	if _, err := io.ReadAll(a); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("what is no longer allowed went on: %v", err)
	}
	write(t, b, "y")
	readUntil(t, b, "y")
}

func TestContextEnds(t *testing.T) {
	w := newWorld(t, egress.Options{}, "a.example:7", "b.example:7")
	w.host("a.example", internet)
	w.host("b.example", "93.184.215.15")
	w.serve(internet+":7", echo)
	w.mu.Lock()
	w.servers["93.184.215.15:7"] = "nowhere"
	w.mu.Unlock()
	c, dialling := w.openName("a.example", 7), w.openName("b.example", 7)
	write(t, c, "x")
	readUntil(t, c, "x")
	w.cancel()
	for _, c := range []*net.TCPConn{c, dialling} {
		if _, err := io.ReadAll(c); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("the end was %v", err)
		}
	}
}

func TestLookupsAreShared(t *testing.T) {
	var mu sync.Mutex
	asked := 0
	w := newWorld(t, egress.Options{LookupHost: func(context.Context, string) ([]netip.Addr, error) {
		mu.Lock()
		defer mu.Unlock()
		asked++
		return []netip.Addr{netip.MustParseAddr(internet)}, nil
	}}, "a.example:7")
	w.serve(internet+":7", echo)
	for range 5 {
		c := w.openName("a.example", 7)
		write(t, c, "x")
		readUntil(t, c, "x")
	}
	if asked != 1 {
		t.Errorf("five connections asked %d times", asked)
	}
}
