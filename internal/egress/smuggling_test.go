package egress_test

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/litterbox-sandbox/litterbox/internal/egress"
)

// attacks are ways to hide a request inside another on one HTTP/1 connection.
func attacks() []string {
	const hidden = "DELETE /you HTTP/1.1\r\nHost: example.com\r\n\r\n"
	post := func(fields, rest string) string {
		return "POST /me HTTP/1.1\r\nHost: example.com\r\n" + fields + "\r\n" + rest
	}
	return []string{
		"GET /me HTTP/1.1\r\nHost: example.com\r\n\r\n" + hidden, // pipelined
		post("Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"+hidden),
		post("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", "0\r\n\r\n"+hidden),
		post("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", "0\r\n\r\n"+hidden),
		post("Transfer-Encoding: xchunked\r\nContent-Length: 60\r\n", hidden),
		post("Transfer-Encoding : chunked\r\nContent-Length: 60\r\n", "0\r\n\r\n"+hidden),
		post("Transfer-Encoding:\tchunked\r\n", "5;a=\nb\r\nhello\r\n0\r\n\r\n"+hidden),
		post("Content-Length: 0\r\nContent-Length: 60\r\n", hidden),
		post("Content-Length: +60\r\n", hidden),
		post("Content-Length: 0x3c\r\n", hidden),
		post("Content-Length: 0\r\n X: folded\r\n", hidden),
		post("Content-Length: 0\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"+hidden),
		post("Connection: Content-Length\r\nContent-Length: 60\r\n", hidden),
		post("Connection: close, Transfer-Encoding\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"+hidden),
		post("Expect: 100-continue\r\nContent-Length: 60\r\n", hidden),
		post("Upgrade: websocket\r\nConnection: Upgrade\r\n", hidden),
		post("X: a\rDELETE /you HTTP/1.1\r\n", ""),
		"GET /me HTTP/1.1\r\nHost: example.com\r\nHost: other.com\r\n\r\n" + hidden,
		"GET https://other.com/me HTTP/1.1\r\nHost: example.com\r\n\r\n" + hidden,
		"GET http://example.com/me HTTP/1.1\r\nHost: example.com\r\n\r\n" + hidden,
		"GET https://user@example.com/me HTTP/1.1\r\nHost: example.com\r\n\r\n" + hidden,
		"CONNECT example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\n" + hidden,
		"GET /me HTTP/1.1\r\nHost: example.com\r\nX-HTTP-Method-Override: DELETE\r\n\r\n" + hidden,
		"GET /me\thttp HTTP/1.1\r\nHost: example.com\r\n\r\n" + hidden,
		"GET /me HTTP/0.9\r\n\r\n" + hidden,
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + hidden,
		hidden,
	}
}

// strict places a server that follows the protocol.
func (w *inspected) strict() {
	s := httptest.NewUnstartedServer(http.HandlerFunc(w.record))
	s.StartTLS()
	w.t.Cleanup(s.Close)
	w.place(internet+":443", s.Listener.Addr())
}

func TestSmugglingInHTTP1(t *testing.T) {
	for n, attack := range attacks() {
		w := newInspected(t, nil, "GET,POST https://example.com/me")
		w.strict()
		c := w.secure("http/1.1")
		write(t, c, attack)
		_ = c.CloseWrite()
		answer, _ := io.ReadAll(c) // a reset is as good as a refusal
		for _, asked := range w.requests() {
			if asked != "GET /me" && asked != "POST /me" {
				t.Errorf("attack %d had the server asked %q:\n%s\nthe answer was %q", n, asked, attack, answer)
			}
		}
		_ = c.Close()
	}
}

// frames speaks HTTP/2 by hand.
type frames struct {
	*http2.Framer
	encoder *hpack.Encoder
	block   bytes.Buffer
}

func speakHTTP2(t testing.TB, c net.Conn) *frames {
	t.Helper()
	write(t, c, http2.ClientPreface)
	f := &frames{Framer: http2.NewFramer(c, c)}
	f.AllowIllegalWrites, f.ReadMetaHeaders = true, hpack.NewDecoder(4096, nil)
	f.encoder = hpack.NewEncoder(&f.block)
	if err := f.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	return f
}

// request writes a request of alternating names and values.
func (f *frames) request(stream uint32, body string, fields ...string) error {
	f.block.Reset()
	for i := 0; i < len(fields); i += 2 {
		if err := f.encoder.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]}); err != nil {
			return err
		}
	}
	if err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: f.block.Bytes(), EndHeaders: true, EndStream: body == ""}); err != nil || body == "" {
		return err
	}
	return f.WriteData(stream, true, []byte(body))
}

// ended waits for the end of a stream, and gives the status.
func (f *frames) ended(stream uint32) string {
	status := ""
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			return "gone"
		}
		switch frame := frame.(type) {
		case *http2.MetaHeadersFrame:
			if got := frame.PseudoValue("status"); frame.StreamID == stream && got != "" { // trailers have none
				status = got
			}
		case *http2.RSTStreamFrame:
			if frame.StreamID == stream {
				return "reset"
			}
		case *http2.GoAwayFrame:
			return "gone"
		}
		if frame.Header().StreamID == stream && frame.Header().Flags.Has(http2.FlagDataEndStream) {
			return status
		}
	}
}

// In HTTP/2 a field may hold what would be two lines in HTTP/1, which the real
// server speaks.
func TestSmugglingInHTTP2(t *testing.T) {
	const lines = "x\r\nHost: example.com\r\n\r\nDELETE /you HTTP/1.1\r\nHost: example.com\r\n\r\n"
	usual := []string{":method", "POST", ":scheme", "https", ":authority", "example.com", ":path", "/me"}
	with := func(fields ...string) []string { return append(slices.Clone(usual), fields...) }
	changed := func(name, value string) []string {
		fields := slices.Clone(usual)
		fields[slices.Index(fields, name)+1] = value
		return fields
	}
	for what, one := range map[string]struct {
		fields []string
		body   string
		want   string // of the status; empty is anything but success
	}{
		"plain":                    {usual, "body", "200"},
		"value with lines":         {with("x", lines), "", ""},
		"name with lines":          {with("x: y\r\n\r\nDELETE /you HTTP/1.1\r\nz", "y"), "", ""},
		"path with lines":          {changed(":path", "/me "+lines), "", ""},
		"path with a space":        {changed(":path", "/me HTTP/1.1 DELETE /you"), "", ""},
		"method with lines":        {changed(":method", "GET /me HTTP/1.1\r\n\r\nDELETE"), "", ""},
		"authority with lines":     {changed(":authority", "example.com\r\n\r\nDELETE /you HTTP/1.1"), "", ""},
		"another authority":        {changed(":authority", "other.com"), "", "403"},
		"authority with a user":    {changed(":authority", "x@example.com"), "", ""},
		"absolute path":            {changed(":path", "https://other.com/me"), "", ""},
		"path of two slashes":      {changed(":path", "//other.com/me"), "", "403"},
		"another scheme":           {changed(":scheme", "http"), "", ""},
		"CONNECT":                  {[]string{":method", "CONNECT", ":authority", "example.com:443"}, "", "403"},
		"extended CONNECT":         {append(changed(":method", "CONNECT"), ":protocol", "websocket"), "", ""},
		"forbidden path":           {changed(":path", "/you"), "", "403"},
		"forbidden method":         {changed(":method", "DELETE"), "", "403"},
		"host beside authority":    {with("host", "other.com"), "", ""},
		"second path":              {with(":path", "/you"), "", ""},
		"pseudo after fields":      {append([]string{"x", "y"}, usual...), "", ""},
		"transfer-encoding":        {with("transfer-encoding", "chunked"), "0\r\n\r\nDELETE /you HTTP/1.1\r\nHost: example.com\r\n\r\n", ""},
		"connection":               {with("connection", "upgrade", "upgrade", "h2c"), "", ""},
		"content-length too short": {with("content-length", "0"), "DELETE /you HTTP/1.1\r\n\r\n", ""},
		"content-length too long":  {with("content-length", "100"), "DELETE /you HTTP/1.1\r\n\r\n", ""},
		"two content-lengths":      {with("content-length", "0", "content-length", "26"), "DELETE /you HTTP/1.1\r\n\r\n", ""},
		"upper-case name":          {with("X-Upper", "y"), "", ""},
	} {
		t.Run(what, func(t *testing.T) {
			w := newInspected(t, nil, "GET,POST https://example.com/me")
			w.strict()
			c := w.secure("h2")
			defer c.Close()
			f := speakHTTP2(t, c)
			if err := f.request(1, one.body, one.fields...); err != nil {
				t.Fatal(err)
			}
			if got := f.ended(1); got != one.want && (one.want != "" || got == "") {
				t.Errorf("ended with %q, want %q", got, one.want)
			}
			for _, asked := range w.requests() {
				if asked != "POST /me" {
					t.Errorf("the server was asked %q", asked)
				}
			}
		})
	}
}

// Whatever bytes a program sends inside TLS, the server gets only requests
// that the policy admits.
func FuzzInsideTLS(f *testing.F) {
	for _, attack := range attacks() {
		f.Add([]byte(attack))
	}
	w := newInspected(f, nil, "GET,POST https://example.com/me")
	w.strict()
	f.Fuzz(func(t *testing.T, data []byte) {
		w.t = t
		c := tls.Client(w.openName("example.com", 443), &tls.Config{RootCAs: w.roots, ServerName: "example.com"})
		if err := c.Handshake(); err != nil {
			t.Fatal(err)
		}
		_, _ = c.Write(data)
		_ = c.CloseWrite()
		_, _ = io.Copy(io.Discard, c) // it may be refused at any byte
		_ = c.Close()
		policy := w.policy.Load()
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, asked := range w.asked {
			method, path, _ := strings.Cut(asked, " ")
			if !policy.Decide(request(host("example.com", 443, egress.HTTPS), method, path)).Allowed {
				t.Errorf("the server was asked %q", asked)
			}
		}
		w.asked = nil
	})
}
