package egress_test

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/egress"
	"github.com/litterbox-sandbox/litterbox/internal/egress/intercept"
)

// marker is a hook that adds its name to a header of every request, and to the
// body of every answer.
type marker struct {
	name  string
	wants func(host string, port uint16, protocol string) bool
}

func (m marker) Wants(host string, port uint16, protocol string) bool {
	return m.wants != nil && m.wants(host, port, protocol)
}

func (m marker) Wrap(s *egress.Session, next http.RoundTripper) http.RoundTripper {
	return intercept.RoundTrip(func(r *http.Request) (*http.Response, error) {
		r.Header.Add("Marks", m.name)
		switch r.Header.Get("Ask") {
		case "deny " + m.name:
			return nil, intercept.Deny(s, r, m.name+" does not want it")
		case "answer " + m.name:
			return &http.Response{StatusCode: 429, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Retry-After": {"9"}},
				Body: io.NopCloser(strings.NewReader("not now")), Request: r}, nil
		}
		response, err := next.RoundTrip(r)
		if err == nil {
			body := response.Body
			response.ContentLength = -1
			response.Header.Del("Content-Length")
			response.Body = struct {
				io.Reader
				io.Closer
			}{io.MultiReader(body, strings.NewReader("<"+m.name+">")), body}
		}
		return response, err
	})
}

// wantsAll is true for one host on every port.
func wantsAll(name string) func(string, uint16, string) bool {
	return func(host string, _ uint16, _ string) bool { return host == name }
}

func hooked(hooks ...intercept.Hook) func(*intercept.Options) {
	return func(o *intercept.Options) { o.Hooks = hooks }
}

func TestHooksInARow(t *testing.T) {
	for _, protocol := range []string{"1", "2"} {
		w := newInspected(t, hooked(marker{name: "inner", wants: wantsAll("example.com")}, marker{name: "outer"}), "example.com")
		s := w.web(internet+":443", true, func(rw http.ResponseWriter, r *http.Request) {
			w.record(rw, r)
			fmt.Fprint(rw, " ", r.Header["Marks"])
		})
		c := w.browser(s, protocol)
		for ask, want := range map[string]reply{
			"":             {200, "HTTP/2.0 GET example.com / hello [inner outer]<outer><inner>"},
			"deny inner":   {403, "litterbox: inner does not want it\n"},
			"deny outer":   {403, "litterbox: outer does not want it\n"},
			"answer inner": {429, "not now"},
			"answer outer": {429, "not now<inner>"},
		} {
			r, err := http.NewRequestWithContext(t.Context(), "GET", "https://example.com/", strings.NewReader("hello"))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Ask", ask)
			response, err := c.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(response.Body)
			response.Body.Close()
			if got := (reply{response.StatusCode, string(body)}); err != nil || got != want {
				t.Errorf("%q over HTTP/%s: %+v (%v), want %+v", ask, protocol, got, err, want)
			}
		}
		if n := len(w.requests()); n != 1 {
			t.Errorf("%d requests reached the server", n)
		}
		wantWhy(t, w.why(egress.Denied), " does not want it")
	}
}

// A hook sees requests that no rule would have looked at, and nothing else
// changes hands.
func TestHooksSeeWhatTheyWant(t *testing.T) {
	for name, policy := range map[string]*egress.Policy{
		"a host":     {Default: egress.Deny, Allow: rules(t, "example.com", "www.example.com")},
		"every port": {Default: egress.Deny, Allow: rules(t, "example.com:*", "www.example.com:*")},
		"TCP":        {Default: egress.Deny, Allow: rules(t, "tcp://example.com:443", "tcp://www.example.com:443", "tcp://example.com:80", "tcp://www.example.com:80")},
		"everything": {Default: egress.Allow},
	} {
		t.Run(name, func(t *testing.T) {
			hook := marker{name: "seen", wants: func(host string, port uint16, _ string) bool {
				return host == "example.com" || host == "" && port == 443
			}}
			w := newInspected(t, hooked(hook))
			w.policy.Store(policy)
			w.host("www.example.com", internet)
			s := w.web(internet+":443", true, w.record)
			plain := w.web(internet+":80", false, w.record)
			for _, one := range []struct {
				client *http.Client
				url    string
				want   string
			}{
				{w.browser(s, "1"), "https://example.com/a", "HTTP/2.0 GET example.com /a <seen>"},
				{w.browser(s, "2"), "https://example.com/b", "HTTP/2.0 GET example.com /b <seen>"},
				{w.browser(plain, "1"), "http://example.com/c", "HTTP/1.1 GET example.com /c <seen>"},
				{w.client(s), "https://www.example.com/d", "HTTP/2.0 GET www.example.com /d "},
				{w.browser(plain, "1"), "http://www.example.com/e", "HTTP/1.1 GET www.example.com /e "},
			} {
				if got := get(t, one.client, "GET", one.url, ""); got.body != one.want {
					t.Errorf("%s: %+v, want %q", one.url, got, one.want)
				}
			}
			if name != "everything" {
				return
			}
			// Straight to the address, but still by its name.
			c := tls.Client(w.open(netip.MustParseAddrPort(internet+":443")), &tls.Config{RootCAs: w.roots, ServerName: "example.com"})
			if err := c.Handshake(); err != nil {
				t.Errorf("straight to the address: %v", err)
			}
		})
	}
}

// Where a rule lets a connection go without a look, a hook that wants its host
// changes nothing for other protocols.
func TestHooksLeaveOtherProtocolsAlone(t *testing.T) {
	w := newInspected(t, hooked(marker{name: "seen", wants: wantsAll("example.com")}), "example.com:2222")
	w.serve(internet+":2222", func(conn *net.TCPConn) {
		_, _ = io.Copy(conn, conn)
		_ = conn.CloseWrite()
	})
	for _, text := range []string{
		"\x00\x01binary", "SSH-2.0-a\r\nb\r\n", "\r\n\r\nGET / HTTP/1.1\r\n\r\n", "GET", "GET / HTTP/9.9\r\n\r\n",
		"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "\x16\x03\x01no hello at all", strings.Repeat("a", 100<<10),
	} {
		conn := w.openName("example.com", 2222)
		go func() {
			_, _ = io.WriteString(conn, text)
			_ = conn.CloseWrite()
		}()
		got, err := io.ReadAll(conn)
		if err != nil || !bytes.Equal(got, []byte(text)) {
			t.Errorf("%.40q came back as %.40q (%v)", text, got, err)
		}
	}
}
