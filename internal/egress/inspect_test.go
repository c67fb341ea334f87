package egress_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/egress"
	"github.com/litterbox-sandbox/litterbox/internal/egress/intercept"
)

func TestRequestsInsideTLS(t *testing.T) {
	for _, protocol := range []string{"1", "2"} {
		for _, upstream := range []string{"1", "2"} {
			t.Run(protocol+" to "+upstream, func(t *testing.T) {
				w := newInspected(t, nil, "GET,POST https://example.com/me/")
				s := httptest.NewUnstartedServer(http.HandlerFunc(w.record))
				s.EnableHTTP2 = upstream == "2"
				s.StartTLS()
				t.Cleanup(s.Close)
				w.place(internet+":443", s.Listener.Addr())
				c := w.browser(s, protocol)
				version := map[string]string{"1": "HTTP/1.1", "2": "HTTP/2.0"}[upstream]
				const no = "litterbox: the rule GET,POST https://example.com/me/ does not cover the request "
				for _, one := range []struct {
					method, path, body string
					want               reply
				}{
					{"GET", "/me/a?q;r", "", reply{200, version + " GET example.com /me/a "}},
					{"GET", "/you", "", reply{403, no + "GET /you\n"}},
					{"POST", "/me/b", "some body", reply{200, version + " POST example.com /me/b some body"}},
					{"DELETE", "/me/a", "", reply{403, no + "DELETE /me/a\n"}},
					{"POST", "/me/../you?secret", "x", reply{403, no + "POST /me/../you?secret\n"}},
					{"GET", "/me/%2e%2e/you", "", reply{403, no + "GET /me/%2e%2e/you\n"}},
					{"GET", "/%6de/c", "", reply{200, version + " GET example.com /me/c "}},
				} {
					if got := get(t, c, one.method, "https://example.com"+one.path, one.body); got != one.want {
						t.Errorf("%s %s: %+v, want %+v", one.method, one.path, got, one.want)
					}
				}
				if got := w.requests(); !slices.Equal(got, []string{"GET /me/a", "POST /me/b", "GET /me/c"}) {
					t.Errorf("the server was asked %q", got)
				}
				var denied []string
				for _, o := range w.seen.Snapshot() {
					if o.Verdict == egress.Denied {
						denied = append(denied, o.Method+" "+o.Path)
					}
				}
				slices.Sort(denied)
				if want := []string{"DELETE /me/a", "GET /me/%2e%2e/you", "GET /you", "POST /me/../you"}; !slices.Equal(denied, want) {
					t.Errorf("recorded as denied: %q", denied)
				}
			})
		}
	}
}

// A program inside cannot tell the host's address from the rule's either.
func TestRequestsToAnAddress(t *testing.T) {
	w := newInspected(t, nil, "GET https://127.0.0.1/me")
	s := w.web("127.0.0.1:443", true, w.record)
	c := w.browser(s, "2")
	transport := c.Transport.(*http.Transport)
	transport.DialContext = func(context.Context, string, string) (net.Conn, error) {
		return w.open(netip.MustParseAddrPort("127.0.0.1:443")), nil
	}
	if got := get(t, c, "GET", "https://127.0.0.1/me", ""); got.status != 200 {
		t.Errorf("%+v", got)
	}
	if got := get(t, c, "GET", "https://127.0.0.1/you", ""); got.status != 403 {
		t.Errorf("%+v", got)
	}
}

// A host that only looks like the real one gets nothing.
func TestRequestsToAnImpostor(t *testing.T) {
	w := newInspected(t, func(o *intercept.Options) { o.Trust = x509.NewCertPool() }, "GET https://example.com/me")
	s := w.web(internet+":443", true, w.record)
	got := get(t, w.browser(s, "2"), "GET", "https://example.com/me", "")
	if got.status != 502 || len(w.requests()) != 0 {
		t.Errorf("%+v, and the impostor was asked %q", got, w.requests())
	}
	wantWhy(t, w.why(egress.Failed), "certificate")
}

func TestRequestsToAPrivateAddress(t *testing.T) {
	w := newInspected(t, nil, "GET https://example.com/me")
	w.host("example.com", "10.1.2.3")
	s := w.web("10.1.2.3:443", true, w.record)
	if got := get(t, w.browser(s, "2"), "GET", "https://example.com/me", ""); got.status != 403 || !strings.Contains(got.body, "a private network") {
		t.Errorf("%+v", got)
	}
	if len(w.dials()) != 0 {
		t.Errorf("it was dialled: %v", w.dials())
	}
}

// A program that does not trust the sandbox's authority is told why.
func TestProgramWithRootsOfItsOwn(t *testing.T) {
	w := newInspected(t, nil, "GET https://example.com/me")
	c := tls.Client(w.openName("example.com", 443), &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "example.com"})
	if err := c.Handshake(); err == nil {
		t.Error("a stranger's authority was trusted")
	}
	wantWhy(t, w.why(egress.Failed), "does not trust the sandbox's certificate authority")
}

// Hosts without such a rule keep their own TLS, end to end.
func TestOthersAreNotLookedInto(t *testing.T) {
	w := newInspected(t, nil, "GET https://other.com/me", "example.com")
	s := w.web(internet+":443", true, w.record)
	c := w.client(s) // trusts the real certificate only
	if got := get(t, c, "DELETE", "https://example.com/all", ""); got.status != 200 {
		t.Errorf("%+v", got)
	}
}

// A deny rule about requests closes a host for those requests alone.
func TestDenyInsideTLS(t *testing.T) {
	w := newInspected(t, nil)
	policy := &egress.Policy{Default: egress.Deny, Allow: rules(t, "example.com"), Deny: rules(t, "POST,PUT https://example.com/upload")}
	w.policy.Store(policy)
	s := w.web(internet+":443", true, w.record)
	c := w.browser(s, "2")
	for _, one := range []struct {
		method, path string
		want         int
	}{{"GET", "/upload", 200}, {"POST", "/upload", 403}, {"PUT", "/upload/x", 403}, {"POST", "/uploads", 200}, {"PUT", "/a/../upload", 403}} {
		if got := get(t, c, one.method, "https://example.com"+one.path, ""); got.status != one.want {
			t.Errorf("%s %s: %+v", one.method, one.path, got)
		}
	}
}

func TestTrailersAndStreams(t *testing.T) {
	w := newInspected(t, nil, "https://example.com/me")
	s := w.web(internet+":443", true, func(rw http.ResponseWriter, r *http.Request) {
		// Each line comes back before the next one is sent.
		flush := http.NewResponseController(rw)
		_ = flush.EnableFullDuplex()
		rw.Header().Set("Trailer", "X-Seen")
		lines := bufio.NewScanner(r.Body)
		for lines.Scan() {
			fmt.Fprintf(rw, "got %s\n", lines.Text())
			_ = flush.Flush()
		}
		rw.Header().Set("X-Seen", r.Trailer.Get("X-Sent"))
	})
	for _, protocol := range []string{"1", "2"} {
		c := w.browser(s, protocol)
		body, send := io.Pipe()
		r, err := http.NewRequestWithContext(t.Context(), "POST", "https://example.com/me", body)
		if err != nil {
			t.Fatal(err)
		}
		r.Trailer = http.Header{"X-Sent": nil}
		go func() { _, _ = io.WriteString(send, "one\n") }()
		response, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(response.Body)
		for _, next := range []string{"two\n", ""} {
			if line, err := lines.ReadString('\n'); !strings.HasPrefix(line, "got ") || err != nil {
				t.Fatalf("%q, %v", line, err)
			}
			if next == "" {
				r.Trailer.Set("X-Sent", "the end")
				_ = send.Close()
				break
			}
			if _, err := io.WriteString(send, next); err != nil {
				t.Fatal(err)
			}
		}
		_, err = io.Copy(io.Discard, lines)
		if closeErr := response.Body.Close(); err != nil || closeErr != nil {
			t.Fatal(err, closeErr)
		}
		if got := response.Trailer.Get("X-Seen"); got != "the end" {
			t.Errorf("over HTTP/%s the trailer was %q", protocol, got)
		}
	}
}

func TestWebsocketInsideTLS(t *testing.T) {
	w := newInspected(t, nil, "GET https://example.com/chat")
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			hello(rw, r)
			return
		}
		conn, buffered, err := rw.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+r.Header.Get("Upgrade")+"\r\n\r\nfirst")
		_, _ = io.Copy(conn, buffered)
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	w.place(internet+":443", s.Listener.Addr())
	c := w.secure("http/1.1")
	write(t, c, "GET /chat"+websocket)
	readUntil(t, c, "first")
	write(t, c, "GET /not HTTP/1.1\r\nHost: other.com\r\n\r\n") // no request any more
	readUntil(t, c, "other.com\r\n\r\n")
	_ = c.Close()

	// After an upgrade to HTTP/2 requests would pass unread.
	c = w.secure("http/1.1")
	write(t, c, "GET /chat HTTP/1.1\r\nHost: example.com\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n\r\n")
	if got := readUntil(t, c, "/chat "); !strings.Contains(got, " 200 ") {
		t.Errorf("the answer was %q", got)
	}
	_ = c.Close()
}

// A new revision ends the requests that it forbids, and no others.
func TestNewRevisionEndsRequests(t *testing.T) {
	w := newInspected(t, nil, "https://example.com/a", "https://example.com/b")
	s := w.web(internet+":443", true, func(rw http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(rw, "begun\n")
		_ = http.NewResponseController(rw).Flush()
		line, _ := bufio.NewReader(r.Body).ReadString('\n')
		_, _ = io.WriteString(rw, line)
	})
	c := w.browser(s, "2")
	begin := func(path string) (*bufio.Reader, *io.PipeWriter) {
		body, send := io.Pipe()
		r, err := http.NewRequestWithContext(t.Context(), "POST", "https://example.com"+path, body)
		if err != nil {
			t.Fatal(err)
		}
		response, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = response.Body.Close() })
		lines := bufio.NewReader(response.Body)
		if line, err := lines.ReadString('\n'); line != "begun\n" {
			t.Fatal(line, err)
		}
		return lines, send
	}
	kept, sendKept := begin("/a")
	cut, sendCut := begin("/b")
	w.allow("https://example.com/a")
	w.proxy.Recheck()
	if _, err := cut.ReadString('\n'); err == nil || err == io.EOF {
		t.Errorf("a request that is forbidden now ended with %v", err)
	}
	_ = sendCut.Close()
	if _, err := io.WriteString(sendKept, "still here\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := kept.ReadString('\n'); line != "still here\n" {
		t.Errorf("%q, %v", line, err)
	}
	_ = sendKept.Close()
}

func TestHTTP2WithoutTLS(t *testing.T) {
	w := newInspected(t, nil, "example.com", "GET http://example.com:8080/me")
	s := httptest.NewUnstartedServer(http.HandlerFunc(w.record))
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	t.Cleanup(s.Close)
	w.place(internet+":80", s.Listener.Addr())
	w.place(internet+":8080", s.Listener.Addr())
	c := w.browser(s, "clear 2")
	for url, want := range map[string]int{"http://example.com/a": 200, "http://example.com:8080/me": 200, "http://example.com:8080/you": 403} {
		if got := get(t, c, "GET", url, ""); got.status != want {
			t.Errorf("%s: %+v", url, got)
		}
	}
	// Another host on the connection of the allowed one.
	r, err := http.NewRequestWithContext(t.Context(), "GET", "http://example.com/b", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "other.com"
	response, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if response.Body.Close(); response.StatusCode != 403 {
		t.Errorf("another :authority: %s", response.Status)
	}
	wantWhy(t, w.why(egress.Denied), `Host is "other.com"`)

	plain := newWorld(t, egress.Options{}, "example.com")
	conn := plain.openName("example.com", 80)
	write(t, conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	wantWhy(t, plain.refused(conn), "cannot be inspected here")
}

func TestAuthorityStaysOutside(t *testing.T) {
	w := newInspected(t, nil, "https://example.com/me")
	info, err := os.Stat(w.options.Authority)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	roots := filepath.Join(w.dir, "roots.pem")
	const others = "# roots of the host\n-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"
	if err := os.WriteFile(roots, []byte(others), 0o644); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(roots)
	if err != nil {
		t.Fatal(err)
	}
	w.options.Roots = append(w.options.Roots, roots, filepath.Join(w.dir, "none"))
	for range 2 { // a keeper that comes later finds the same authority
		if err := intercept.New(w.options).Prepare(); err != nil {
			t.Fatal(err)
		}
	}
	after, err := os.Stat(roots)
	if err != nil || !os.SameFile(before, after) {
		t.Errorf("the file that is mounted was replaced (%v)", err)
	}
	own, err := os.ReadFile(w.options.Roots[0])
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(roots)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(others+"\n"+string(own), string(data)); diff != "" {
		t.Errorf("the roots (-want +got):\n%s", diff)
	}
	if strings.Contains(string(data), "PRIVATE") || strings.Count(string(own), "BEGIN") != 1 {
		t.Errorf("the sandbox is given more than one certificate:\n%s", own)
	}
}
