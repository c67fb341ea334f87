package egress_test

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

// A server that knows its callers by certificates learns none from the keeper,
// whatever the client inside holds: the keeper, which has no certificate, makes
// the requests that are looked into. The control is the same client beside it.
func TestNoClientCertificateIsLent(t *testing.T) {
	t.Parallel()
	w := newInspected(t, nil, "GET https://example.com/me")
	var callers []int
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		callers = append(callers, len(r.TLS.PeerCertificates))
		w.mu.Unlock()
		w.record(rw, r)
	}))
	s.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	s.StartTLS()
	t.Cleanup(s.Close)
	w.place(internet+":443", s.Listener.Addr())

	direct := s.Client()
	transport := direct.Transport.(*http.Transport).Clone()
	transport.TLSClientConfig.Certificates = s.TLS.Certificates
	t.Cleanup(transport.CloseIdleConnections)
	direct.Transport = transport
	if got := get(t, direct, "GET", s.URL+"/me", ""); got.status != http.StatusOK {
		t.Fatalf("control: %+v", got)
	}
	browser := w.browser(s, "1")
	browser.Transport.(*http.Transport).TLSClientConfig.Certificates = s.TLS.Certificates
	if got := get(t, browser, "GET", "https://example.com/me", ""); got.status != http.StatusOK {
		t.Errorf("where a certificate is only asked for: %+v", got)
	}
	seen := func() []int {
		w.mu.Lock()
		defer w.mu.Unlock()
		return slices.Clone(callers)
	}
	if got := seen(); !slices.Equal(got, []int{1, 0}) {
		t.Errorf("the server saw %v certificates, want one of the control and none through the keeper", got)
	}
	strict := httptest.NewUnstartedServer(s.Config.Handler)
	strict.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	strict.StartTLS()
	t.Cleanup(strict.Close)
	w.place(internet+":443", strict.Listener.Addr())
	s.CloseClientConnections()
	if got := get(t, w.browser(s, "1"), "GET", "https://example.com/me", ""); got.status == http.StatusOK {
		t.Errorf("where a certificate is wanted: %+v", got)
	}
	if got := seen(); len(got) != 2 {
		t.Errorf("the server was asked %d times, want 2", len(got))
	}
}

// A request in early data comes before anything is proved, and may come again.
// Where TLS is looked into it is not served, in any form: the keeper hands out no
// tickets that would allow it, and ends a handshake that brings some.
func TestEarlyDataIsNotServed(t *testing.T) {
	t.Parallel()
	const request = "GET /me HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n\r\n"
	w := newInspected(t, nil, "GET https://example.com/me")
	w.strict()
	secure := w.secure("http/1.1") // the control
	write(t, secure, request)
	if answer, err := io.ReadAll(secure); err != nil || !strings.Contains(string(answer), "200 OK") {
		t.Fatalf("control: %q, %v", answer, err)
	}
	_ = secure.Close()
	if got := w.requests(); len(got) != 1 {
		t.Fatalf("control: the server was asked %q", got)
	}
	const earlyData = 42 // RFC 8446, 4.2.10
	hello := extended(clientHello(&tls.Config{ServerName: "example.com", NextProtos: []string{"http/1.1"}}), 0, earlyData, 0, 0)
	record := append([]byte{23, 3, 3, 0, byte(len(request))}, request...)
	for name, sent := range map[string][]byte{"with the hello": slices.Concat(hello, record), "and nothing before": record, "twice": slices.Concat(hello, record, hello, record)} {
		c := w.openName("example.com", 443)
		if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		_, _ = c.Write(sent) // may be refused in the middle
		_ = c.CloseWrite()
		answer, _ := io.ReadAll(c) // an alert, or a reset
		_ = c.Close()
		if strings.Contains(string(answer), "HTTP/1.1") {
			t.Errorf("early data %s is answered with %q", name, answer)
		}
	}
	if got := w.requests(); len(got) != 1 {
		t.Errorf("early data is served: the server was asked %q", got)
	}
}
