package egress_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/egress"
)

// hello answers with the request it was sent.
func hello(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	fmt.Fprintf(rw, "%s %s %s %s %s", r.Proto, r.Method, r.Host, r.URL.Path, body)
}

// web places an HTTP server; its certificate is for example.com.
func (w *world) web(addr string, secure bool, handler http.HandlerFunc) *httptest.Server {
	s := httptest.NewUnstartedServer(handler)
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // many handshakes here are meant to break
	if secure {
		s.EnableHTTP2 = true
		s.StartTLS()
	} else {
		s.Start()
	}
	w.place(addr, s.Listener.Addr())
	w.t.Cleanup(s.Close)
	return s
}

func ask(t *testing.T, c *http.Client, method, url, body string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body == "chunks" {
		r.ContentLength = -1
		r.Trailer = http.Header{"X-Trailer": {"yes"}}
	}
	response, err := c.Do(r)
	if err != nil {
		return "error"
	}
	defer response.Body.Close()
	all, err := io.ReadAll(response.Body)
	if err != nil {
		return "error"
	}
	return string(all)
}

func TestHTTP(t *testing.T) {
	w := newWorld(t, egress.Options{}, "example.com", "http://example.com:8080")
	w.host("example.com", internet)
	s := w.web(internet+":80", false, hello)
	w.place(internet+":8080", s.Listener.Addr())
	c := w.client(s)
	for _, one := range [][4]string{
		{"GET", "http://example.com/a", "", "HTTP/1.1 GET example.com /a "},
		{"POST", "http://example.com/b", "some body", "HTTP/1.1 POST example.com /b some body"},
		{"PUT", "http://EXAMPLE.com/c", "chunks", "HTTP/1.1 PUT EXAMPLE.com /c chunks"},
		{"GET", "http://example.com:8080/d", "", "HTTP/1.1 GET example.com:8080 /d "},
	} {
		if got := ask(t, c, one[0], one[1], one[2]); got != one[3] {
			t.Errorf("%s %s answered %q, want %q", one[0], one[1], got, one[3])
		}
	}
	if dials := w.dials(); len(dials) > 3 {
		t.Errorf("connections were not kept: %v", dials)
	}
}

func TestTLS(t *testing.T) {
	w := newWorld(t, egress.Options{}, "example.com", "https://example.com:8443", internet)
	w.host("example.com", internet)
	s := w.web(internet+":443", true, hello)
	w.place(internet+":8443", s.Listener.Addr())
	c := w.client(s)
	if got := ask(t, c, "GET", "https://example.com/a", ""); got != "HTTP/2.0 GET example.com /a " {
		t.Errorf("HTTP/2 answered %q", got)
	}
	c.Transport.(*http.Transport).ForceAttemptHTTP2 = false
	c.Transport.(*http.Transport).TLSClientConfig.NextProtos = []string{"http/1.1"}
	if got := ask(t, c, "POST", "https://example.com:8443/b", "x"); got != "HTTP/1.1 POST example.com:8443 /b x" {
		t.Errorf("HTTP/1 answered %q", got)
	}
	// By address, without a server name.
	conn := tls.Client(w.open(netip.MustParseAddrPort(internet+":443")), &tls.Config{InsecureSkipVerify: true})
	if err := conn.Handshake(); err != nil {
		t.Errorf("TLS with an allowed address: %v", err)
	}
}

func TestServerNames(t *testing.T) {
	for _, c := range []struct {
		name, allow, dial, sni, want string
		alpn                         []string
	}{
		{name: "agrees", allow: "example.com", dial: "example.com", sni: "example.com"},
		{name: "agrees in capitals", allow: "example.com", dial: "example.com", sni: "EXAMPLE.com"},
		{name: "other", allow: "example.com; other.com", dial: "example.com", sni: "other.com", want: `asks for "other.com"`},
		{name: "below", allow: "example.com; *.example.com", dial: "example.com", sni: "www.example.com", want: `asks for "www.example.com"`},
		{name: "none", allow: "example.com", dial: "example.com", want: "names no server"},
		{name: "none with tcp", allow: "tcp://example.com:443", dial: "example.com"},
		{name: "other with tcp", allow: "tcp://example.com:443", dial: "example.com", sni: "other.com"},
		{name: "methods", allow: "GET https://example.com", dial: "example.com", sni: "example.com", want: "TLS hides them"},
		{name: "address", allow: internet, dial: internet, sni: "example.com"},
		{name: "address, https", allow: "https://" + internet, dial: internet},
		{name: "address, https, named", allow: "https://" + internet, dial: internet, sni: "example.com", want: "only the address is allowed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, egress.Options{}, split(c.allow)...)
			w.host("example.com", internet)
			w.web(internet+":443", true, hello)
			var raw *net.TCPConn
			if addr, err := netip.ParseAddr(c.dial); err == nil {
				raw = w.open(netip.AddrPortFrom(addr, 443))
			} else {
				raw = w.openName(c.dial, 443)
			}
			err := tls.Client(raw, &tls.Config{InsecureSkipVerify: true, ServerName: c.sni}).Handshake()
			if c.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil {
				t.Error("the handshake passed")
			}
			wantWhy(t, w.why(egress.Denied), c.want)
			if dials := w.dials(); len(dials) > 0 {
				t.Errorf("%v was dialled", dials)
			}
		})
	}
}

// Where everything is allowed by default, deny rules still count inside.
func TestDenyInsideOpenPolicy(t *testing.T) {
	w := newWorld(t, egress.Options{})
	w.policy.Store(&egress.Policy{Default: egress.Allow, Deny: rules(t, "telemetry.com")})
	w.host("example.com", internet)
	w.web(internet+":443", true, hello)
	for name, passes := range map[string]bool{"example.com": true, "telemetry.com": false, "": false} {
		raw := w.open(netip.MustParseAddrPort(internet + ":443"))
		err := tls.Client(raw, &tls.Config{InsecureSkipVerify: true, ServerName: name}).Handshake()
		if (err == nil) != passes {
			t.Errorf("the server name %q: %v", name, err)
		}
	}
}

// Every request of a connection is judged, not the first alone.
func TestLaterRequests(t *testing.T) {
	for name, c := range map[string]struct{ allow, second, want string }{
		"other Host":   {"example.com", "GET / HTTP/1.1\r\nHost: other.com\r\n\r\n", `Host is "other.com"`},
		"other path":   {"http://example.com/a", "GET /b HTTP/1.1\r\nHost: example.com\r\n\r\n", "does not cover"},
		"other method": {"GET http://example.com", "DELETE / HTTP/1.1\r\nHost: example.com\r\n\r\n", "does not cover"},
		"CONNECT":      {"example.com", "CONNECT example.com:80 HTTP/1.1\r\nHost: example.com\r\n\r\n", "CONNECT"},
		"HTTP/2":       {"example.com", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "version"},
		"no HTTP":      {"example.com", "SSH-2.0-x\r\n", "neither TLS nor HTTP"},
		"bad chunk":    {"example.com", "POST /a HTTP/1.1\r\nHost: example.com\r\nTransfer-Encoding: chunked\r\n\r\n0x5\r\nabcde\r\n0\r\n\r\n", "body is malformed"},
		"long chunk":   {"example.com", "POST /a HTTP/1.1\r\nHost: example.com\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcde\r\n0\r\n\r\n", "body is malformed"},
		"chunk's tail": {"example.com", "POST /a HTTP/1.1\r\nHost: example.com\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n0\r\n\r\n", "body is malformed"},
		"huge chunk":   {"example.com", "POST /a HTTP/1.1\r\nHost: example.com\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n", "body is malformed"},
		"bad trailer":  {"example.com", "POST /a HTTP/1.1\r\nHost: example.com\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nGET / HTTP/1.1\r\n\r\n", "body is malformed"},
		"after a body": {"example.com", "POST /a HTTP/1.1\r\nHost: example.com\r\nContent-Length: 3\r\n\r\nabcGET / HTTP/1.1\r\nHost: other.com\r\n\r\n", `Host is "other.com"`},
		"after chunks": {"example.com", "POST /a HTTP/1.1\r\nHost: example.com\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\nGET / HTTP/1.1\r\nHost: other.com\r\n\r\n", `Host is "other.com"`},
		"new revision": {"revised", "GET /a HTTP/1.1\r\nHost: example.com\r\n\r\n", "no rule allows"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, egress.Options{}, c.allow)
			if c.allow == "revised" {
				w.allow("example.com")
			}
			w.host("example.com", internet)
			w.web(internet+":80", false, func(rw http.ResponseWriter, r *http.Request) {
				if r.Host != "example.com" {
					t.Errorf("a request for %q passed", r.Host)
				}
				hello(rw, r)
			})
			conn := w.openName("example.com", 80)
			write(t, conn, "\r\nGET /a HTTP/1.1\r\nHost: example.com\r\n\r\n")
			if got := readUntil(t, conn, "/a "); !strings.HasPrefix(got, "HTTP/1.1 200") {
				t.Fatalf("the first answer was %q", got)
			}
			if c.allow == "revised" {
				w.allow("other.com")
			}
			write(t, conn, c.second)
			wantWhy(t, w.why(egress.Denied), c.want)
			w.handlers.Wait()
		})
	}
}

// switching answers upgrades with 101 and echoes, and everything else with 200.
func switching(t *testing.T) func(*net.TCPConn) {
	return func(c *net.TCPConn) {
		r := bufio.NewReader(c)
		for {
			request, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			if request.Host != "example.com" {
				t.Errorf("a request for %q passed", request.Host)
			}
			if request.Header.Get("Upgrade") == "" || request.URL.Path == "/plain" {
				write(t, c, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nplain")
				continue
			}
			write(t, c, "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nfirst")
			_, _ = io.Copy(c, r)
			_ = c.CloseWrite()
			return
		}
	}
}

const websocket = " HTTP/1.1\r\nHost: example.com\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\r\n"

func TestUpgrade(t *testing.T) {
	w := newWorld(t, egress.Options{}, "GET http://example.com/")
	w.host("example.com", internet)
	w.serve(internet+":80", switching(t))
	c := w.openName("example.com", 80)
	write(t, c, "GET /chat"+websocket+"early")
	if got := readUntil(t, c, "firstearly"); !strings.Contains(got, " 103 ") || !strings.Contains(got, " 101 ") {
		t.Errorf("the answer was %q", got)
	}
	// From here on these are not requests, and are not read as such.
	write(t, c, "GET / HTTP/1.1\r\nHost: other.com\r\n\r\n")
	readUntil(t, c, "other.com\r\n\r\n")
}

// An upgrade that the server declines does not open the connection for
// unjudged requests.
func TestUpgradeDeclined(t *testing.T) {
	w := newWorld(t, egress.Options{}, "example.com")
	w.host("example.com", internet)
	w.serve(internet+":80", switching(t))
	c := w.openName("example.com", 80)
	write(t, c, "GET /plain"+websocket)
	readUntil(t, c, "plain")
	write(t, c, "GET /a HTTP/1.1\r\nHost: example.com\r\n\r\n")
	readUntil(t, c, "plain")
	// A later one is an ordinary request, whatever the server would do.
	write(t, c, "GET /chat"+websocket)
	if got := readUntil(t, c, "plain"); !strings.Contains(got, " 200 ") {
		t.Errorf("the answer was %q", got)
	}
	write(t, c, "GET / HTTP/1.1\r\nHost: other.com\r\n\r\n")
	wantWhy(t, w.refused(c), `Host is "other.com"`)
}

// The limit on heads ends with the head: what was admitted may be silent for
// longer. Time must pass for that.
func TestSilenceAfterTheHead(t *testing.T) {
	const limit = 3 * time.Second // ample for everything up to then, on a loaded machine
	w := newWorld(t, egress.Options{HeadTimeout: limit}, "example.com")
	w.host("example.com", internet)
	s := w.web(internet+":443", true, hello)
	w.serve(internet+":80", switching(t))

	secure := tls.Client(w.openName("example.com", 443), &tls.Config{InsecureSkipVerify: true, ServerName: s.Certificate().DNSNames[0]})
	if err := secure.Handshake(); err != nil {
		t.Fatal(err)
	}
	upgraded := w.openName("example.com", 80)
	write(t, upgraded, "GET /chat"+websocket)
	readUntil(t, upgraded, "first")
	kept := w.openName("example.com", 80)
	write(t, kept, "GET /a HTTP/1.1\r\nHost: example.com\r\n\r\n")
	readUntil(t, kept, "plain")
	uploading := w.openName("example.com", 80)
	write(t, uploading, "POST /a HTTP/1.1\r\nHost: example.com\r\nContent-Length: 4\r\n\r\nab")

	<-time.After(limit + limit/4)
	write(t, secure, "GET /a HTTP/1.1\r\nHost: example.com\r\n\r\n")
	readUntil(t, secure, "/a ")
	write(t, upgraded, "x")
	readUntil(t, upgraded, "x")
	write(t, kept, "GET /a HTTP/1.1\r\nHost: example.com\r\n\r\n")
	readUntil(t, kept, "plain")
	write(t, uploading, "cd")
	readUntil(t, uploading, "plain")
}
