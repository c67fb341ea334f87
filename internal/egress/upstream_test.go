package egress_test

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/egress"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

func upstream(t *testing.T, env map[string]string) *egress.Upstream {
	t.Helper()
	u, err := egress.UpstreamFromEnv(func(name string) string { return env[name] })
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestUpstreamFromEnv(t *testing.T) {
	if u := upstream(t, map[string]string{"NO_PROXY": "*"}); u != nil {
		t.Error("no proxy became one")
	}
	for text, want := range map[string]fault.Kind{"ftp://proxy.example": fault.Unsupported, "http://%zz:secret@": fault.Invalid} {
		_, err := egress.UpstreamFromEnv(func(name string) string { return map[string]string{"https_proxy": text}[name] })
		if fault.KindOf(err) != want || strings.Contains(fmt.Sprint(err), "secret") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// httpProxy answers CONNECT with 200 and everything else as a forward proxy
// would, and reports each request.
func httpProxy(t *testing.T, asked chan<- string) func(*net.TCPConn) {
	return func(c *net.TCPConn) {
		r := bufio.NewReader(c)
		request, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		asked <- request.Method + " " + request.RequestURI + " " + request.Header.Get("Proxy-Authorization")
		if request.Method != http.MethodConnect {
			write(t, c, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nproxy.")
			_, _ = io.Copy(io.Discard, r)
			return
		}
		write(t, c, "HTTP/1.1 200 Go ahead\r\nX: y\r\n\r\n")
		_, _ = io.Copy(c, r)
		_ = c.CloseWrite()
	}
}

func TestThroughHTTPProxy(t *testing.T) {
	asked := make(chan string, 1)
	w := newWorld(t, egress.Options{Upstream: upstream(t, map[string]string{
		"HTTP_PROXY": "http://me:pw@127.0.0.9:3128", "https_proxy": "127.0.0.9:3128", "NO_PROXY": ".direct.example",
	})}, "a.example", "tcp://b.example:443", "*.direct.example:7", "c.example:7", "inner.example")
	w.host("a.example", internet) // only the proxy knows b.example
	w.host("x.direct.example", internet)
	w.host("c.example", internet)
	w.host("inner.example", "10.0.0.1")
	w.serve("127.0.0.9:3128", httpProxy(t, asked))
	w.serve(internet+":7", echo)

	c := w.openName("a.example", 80)
	write(t, c, "GET /x HTTP/1.1\r\nHost: a.example\r\nProxy-Authorization: mine\r\n\r\n")
	readUntil(t, c, "proxy.")
	wantWhy(t, w.why(egress.Allowed), "the proxy of this machine resolves the name")
	want := "GET http://a.example/x Basic " + base64.StdEncoding.EncodeToString([]byte("me:pw"))
	if got := <-asked; got != want {
		t.Errorf("plain HTTP asked for %q, want %q", got, want)
	}
	write(t, c, "GET /y HTTP/1.1\r\nHost: other.example\r\n\r\n")
	wantWhy(t, w.why(egress.Denied), "Host is")

	c = w.openName("a.example", 80)
	write(t, c, "GET /x HTTP/1.1\r\nHost: a.example\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n")
	if got := <-asked; !strings.HasPrefix(got, "CONNECT a.example:80 Basic ") {
		t.Errorf("a websocket asked for %q", got)
	}
	_ = c.Close()

	c = w.openName("b.example", 443)
	write(t, c, "tunnelled")
	readUntil(t, c, "tunnelled")
	if got := <-asked; got != "CONNECT b.example:443 " {
		t.Errorf("TCP asked for %q", got)
	}
	for _, name := range []string{"x.direct.example", "c.example"} { // not for this proxy
		c = w.openName(name, 7)
		write(t, c, "x")
		readUntil(t, c, "x")
	}
	c = w.openName("inner.example", 80)
	write(t, c, "GET / HTTP/1.1\r\nHost: inner.example\r\n\r\n")
	_ = w.refused(c)
	if diff := cmp.Diff([]string{"127.0.0.9:3128", "127.0.0.9:3128", "127.0.0.9:3128", internet + ":7", internet + ":7"}, w.dials()); diff != "" {
		t.Errorf("dialled (-want +got):\n%s", diff)
	}
}

func TestProxyRefuses(t *testing.T) {
	w := newWorld(t, egress.Options{Upstream: upstream(t, map[string]string{"ALL_PROXY": "http://127.0.0.9:3128"})}, "a.example:7")
	w.serve("127.0.0.9:3128", func(c *net.TCPConn) {
		readUntil(t, c, "\r\n\r\n")
		write(t, c, "HTTP/1.1 403 Never\r\n\r\n")
	})
	c := w.openName("a.example", 7)
	_, _ = io.ReadAll(c) // ends with a reset
	wantWhy(t, w.why(egress.Failed), "403 Never")
}

func TestThroughSOCKS(t *testing.T) {
	for name, login := range map[string]string{"open": "", "with a password": "me:pw@"} {
		t.Run(name, func(t *testing.T) {
			asked := make(chan string, 1)
			w := newWorld(t, egress.Options{Upstream: upstream(t, map[string]string{"ALL_PROXY": "socks5h://" + login + "127.0.0.9"})}, "a.example:7")
			w.host("a.example", internet)
			w.serve("127.0.0.9:1080", func(c *net.TCPConn) { asked <- socksServer(c) })
			c := w.openName("a.example", 7)
			write(t, c, "hello")
			if err := c.CloseWrite(); err != nil {
				t.Fatal(err)
			}
			if all, err := io.ReadAll(c); string(all) != "hello" || err != nil {
				t.Errorf("through the proxy came %q, %v", all, err)
			}
			want := strings.TrimSuffix(login, "@") + " a.example 7"
			if got := <-asked; got != want {
				t.Errorf("the proxy was asked for %q, want %q", got, want)
			}
		})
	}
}

// socksServer plays RFC 1928 and echoes.
func socksServer(c *net.TCPConn) string {
	r := bufio.NewReader(c)
	block := func() string { // a length and as many bytes
		n, _ := r.ReadByte()
		data := make([]byte, n)
		_, _ = io.ReadFull(r, data)
		return string(data)
	}
	version, _ := r.ReadByte()
	who := ""
	if methods := block(); version == 5 && strings.Contains(methods, "\x02") {
		_, _ = c.Write([]byte{5, 2})
		_, _ = r.ReadByte()
		who = block() + ":" + block()
		_, _ = c.Write([]byte{1, 0})
	} else {
		_, _ = c.Write([]byte{5, 0})
	}
	head := make([]byte, 4)
	_, _ = io.ReadFull(r, head)
	host := ""
	if string(head) == "\x05\x01\x00\x03" {
		host = block()
	}
	port := make([]byte, 2)
	_, _ = io.ReadFull(r, port)
	_, _ = c.Write([]byte{5, 0, 0, 3, 1, 'x', 0, 0})
	_, _ = io.Copy(c, r)
	_ = c.CloseWrite()
	return fmt.Sprintf("%s %s %d", who, host, int(port[0])<<8|int(port[1]))
}
