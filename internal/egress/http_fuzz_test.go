package egress_test

import (
	"crypto/tls"
	"io"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/egress"
)

// onlyAllowed fails the test for a request that reached the server and that the
// policy does not admit.
func (w *inspected) onlyAllowed(t *testing.T, port uint16, protocol string) {
	t.Helper()
	policy := w.policy.Load()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, asked := range w.asked {
		method, path, _ := strings.Cut(asked, " ")
		if !policy.Decide(request(host("example.com", port, protocol), method, path)).Allowed {
			t.Errorf("the server was asked %q", asked)
		}
	}
	w.asked = nil
}

// FuzzPlainHTTP is FuzzInsideTLS without TLS: the proxy passes heads, bodies and
// chunks on as they came, and reads them as the server does.
func FuzzPlainHTTP(f *testing.F) {
	for _, attack := range attacks() {
		f.Add([]byte(attack))
	}
	f.Add([]byte("POST /me HTTP/1.1\r\nHost: example.com\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-Trailer: y\r\n\r\nGET /me HTTP/1.1\r\nHost: example.com\r\n\r\n"))
	f.Add([]byte("POST /me HTTP/1.1\r\nHost: example.com\r\nTransfer-Encoding: chunked\r\n\r\n5\nhello\r\n00\r\n\r\nDELETE /you HTTP/1.1\r\nHost: example.com\r\n\r\n"))
	w := newInspected(f, nil, "GET,POST http://example.com/me")
	w.web(internet+":80", false, w.record)
	f.Fuzz(func(t *testing.T, data []byte) {
		w.t = t
		c := w.openName("example.com", 80)
		_, _ = c.Write(data)
		_ = c.CloseWrite()
		_, _ = io.Copy(io.Discard, c) // it may be refused at any byte
		_ = c.Close()
		w.onlyAllowed(t, 80, egress.HTTP)
	})
}

// FuzzHTTP2 lets a program choose every field of a request in HTTP/2, which the
// server behind us is asked in HTTP/1.
func FuzzHTTP2(f *testing.F) {
	const lines = "x\r\nHost: example.com\r\n\r\nDELETE /you HTTP/1.1\r\nHost: example.com\r\n\r\n"
	f.Add("POST", "/me", "example.com", "x", "y", "body")
	f.Add("GET", "/me/../you", "example.com", "content-length", "0", lines)
	f.Add("GET "+lines, "/me "+lines, "example.com\r\n", "x: y\r\n\r\n", lines, "")
	f.Add("CONNECT", "", "example.com:443", ":protocol", "websocket", "")
	f.Add("POST", "//you", "user@example.com", "transfer-encoding", "chunked", "0\r\n\r\n"+lines)
	f.Add("OPTIONS", "*", "", "host", "other.com", "\x00")
	w := newInspected(f, nil, "GET,POST https://example.com/me")
	w.strict()
	f.Fuzz(func(t *testing.T, method, path, authority, name, value, body string) {
		w.t = t
		c := tls.Client(w.openName("example.com", 443), &tls.Config{RootCAs: w.roots, ServerName: "example.com", NextProtos: []string{"h2"}})
		if err := c.Handshake(); err != nil {
			t.Fatal(err)
		}
		frames := speakHTTP2(t, c)
		fields := []string{":method", method, ":scheme", "https", ":authority", authority, ":path", path, name, value}
		if frames.request(1, body, fields...) == nil {
			frames.ended(1)
		}
		_ = c.Close()
		w.onlyAllowed(t, 443, egress.HTTPS)
	})
}
