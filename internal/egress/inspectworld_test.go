package egress_test

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/egress"
	"github.com/litterbox-sandbox/litterbox/internal/egress/intercept"
)

// inspected is a world whose proxy looks into TLS.
type inspected struct {
	*world
	dir     string
	roots   *x509.CertPool // what the sandbox trusts
	options intercept.Options

	mu    sync.Mutex
	asked []string // the requests that reached a server
}

func newInspected(t testing.TB, change func(*intercept.Options), allow ...string) *inspected {
	t.Helper()
	w := &inspected{dir: t.TempDir(), roots: x509.NewCertPool()}
	own := filepath.Join(w.dir, "own.pem")
	if err := os.WriteFile(own, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	w.options = intercept.Options{Authority: filepath.Join(w.dir, "authority.pem"), Roots: []string{own}, Trust: x509.NewCertPool()}
	real := httptest.NewTLSServer(nil)
	w.options.Trust.AddCert(real.Certificate()) // all such servers have the same
	real.Close()
	if change != nil {
		change(&w.options)
	}
	inspector := intercept.New(w.options)
	if err := inspector.Prepare(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(own)
	if err != nil || !w.roots.AppendCertsFromPEM(data) {
		t.Fatalf("the sandbox's roots are %q (%v)", data, err)
	}
	w.world = newWorld(t, egress.Options{Inspector: inspector}, allow...)
	w.host("example.com", internet)
	return w
}

// record answers with what it was asked, and remembers it.
func (w *inspected) record(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	w.asked = append(w.asked, r.Method+" "+r.URL.Path)
	w.mu.Unlock()
	rw.Header().Set("Trailer", "X-Trailer")
	hello(rw, r)
	rw.Header().Set("X-Trailer", r.Trailer.Get("X-Trailer"))
}

func (w *inspected) requests() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.asked)
}

// browser is a client of the sandbox that trusts what the sandbox trusts.
func (w *inspected) browser(s *httptest.Server, protocols ...string) *http.Client {
	c := w.client(s)
	transport := c.Transport.(*http.Transport)
	transport.TLSClientConfig = &tls.Config{RootCAs: w.roots}
	transport.Protocols = new(http.Protocols)
	for _, protocol := range protocols {
		switch protocol {
		case "1":
			transport.Protocols.SetHTTP1(true)
		case "2":
			transport.Protocols.SetHTTP2(true)
		case "clear 2":
			transport.Protocols.SetUnencryptedHTTP2(true)
		}
	}
	return c
}

// secure opens TLS as a program in the sandbox that offers these protocols.
func (w *inspected) secure(protocols ...string) *tls.Conn {
	w.t.Helper()
	c := tls.Client(w.openName("example.com", 443), &tls.Config{RootCAs: w.roots, ServerName: "example.com", NextProtos: protocols})
	if err := c.HandshakeContext(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	return c
}

type reply struct {
	status int
	body   string
}

func get(t testing.TB, c *http.Client, method, url, body string) reply {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := c.Do(r)
	if err != nil {
		return reply{0, err.Error()}
	}
	defer response.Body.Close()
	all, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{response.StatusCode, string(all)}
}
