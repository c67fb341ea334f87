package intercept

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/egress"
)

// Bounds of what servers can hold here, for one connection of the sandbox.
const (
	maxUpstream     = 32 // connections to the host, where it speaks HTTP/1 only
	upstreamStream  = 256 << 10
	upstreamWindow  = 1 << 20
	maxResponseHead = 1 << 20
)

// exchange is one connection of the sandbox with its connections to the host. It
// is the connection below TLS: its Close is the end, whichever side calls it.
type exchange struct {
	net.Conn
	session   *egress.Session
	authority string // what requests name as their host
	transport *http.Transport
	proxy     *httputil.ReverseProxy

	mu     sync.Mutex
	active int // requests under way
	over   bool
	done   chan struct{} // closed when it has ended and nothing is under way
}

type exchangeKey struct{}

// exchangeOf finds the exchange behind a connection of the server.
func exchangeOf(conn net.Conn) *exchange {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	return conn.(*exchange)
}

func newExchange(i *Inspector, conn net.Conn, s *egress.Session) *exchange {
	x := &exchange{Conn: conn, session: s, done: make(chan struct{})}
	scheme, standard := "https", uint16(443)
	x.transport = &http.Transport{
		DialContext:        func(ctx context.Context, _, _ string) (net.Conn, error) { return s.Dial(ctx) },
		DisableCompression: true, // compression is between the program and the server
		MaxConnsPerHost:    maxUpstream, MaxIdleConnsPerHost: 4, IdleConnTimeout: 90 * time.Second,
		TLSHandshakeTimeout: headTimeout, ExpectContinueTimeout: time.Second, MaxResponseHeaderBytes: maxResponseHead,
		HTTP2: &http.HTTP2Config{MaxReceiveBufferPerStream: upstreamStream, MaxReceiveBufferPerConnection: upstreamWindow},
	}
	if s.Plain {
		scheme, standard = "http", 80
		x.transport.Protocols = new(http.Protocols)
		x.transport.Protocols.SetHTTP1(!s.Two)
		x.transport.Protocols.SetUnencryptedHTTP2(s.Two)
		x.transport.Proxy = func(*http.Request) (*url.URL, error) { return s.Forwards(), nil }
	} else {
		x.transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: i.o.Trust, ServerName: s.Name}
		x.transport.Protocols = protocols(true, true)
	}
	x.authority = s.Name
	switch {
	case s.Port != standard:
		x.authority = net.JoinHostPort(s.Name, strconv.Itoa(int(s.Port)))
	case strings.Contains(s.Name, ":"):
		x.authority = "[" + s.Name + "]"
	}
	x.proxy = &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { x.prepare(r, scheme) },
		Transport: soundTrailers(wrap(i.o.Hooks, s, x.transport)), ErrorHandler: x.failed, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
	}
	return x
}

// Close ends the connection; requests under way notice it.
func (x *exchange) Close() error {
	x.mu.Lock()
	if !x.over {
		x.over = true
		x.settle()
	}
	x.mu.Unlock()
	return x.Conn.Close()
}

// settle is called with mu held.
func (x *exchange) settle() {
	if x.over && x.active == 0 {
		close(x.done)
		x.transport.CloseIdleConnections()
	}
}

func (x *exchange) begin() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.over {
		return false
	}
	x.active++
	return true
}

func (x *exchange) end() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.active--
	x.settle()
}

// handle answers one request of any connection.
func handle(w http.ResponseWriter, r *http.Request) {
	x := r.Context().Value(exchangeKey{}).(*exchange)
	if !x.begin() {
		panic(http.ErrAbortHandler)
	}
	defer x.end()
	x.serve(w, r)
}

// serve decides on one request and carries it. It decides on what will be
// sent: the parsed request, never the client's bytes.
func (x *exchange) serve(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancel(r.Context())
	controller := http.NewResponseController(w)
	stop := &stopper{cancel: cancel, controller: controller}
	defer stop.end()
	asked := egress.Request{Method: r.Method, Authority: r.Host, Path: r.URL.RequestURI(), Cancel: stop.now}
	if why := x.odd(r); why != "" {
		x.session.Refuse(asked, why)
		refuse(w, http.StatusForbidden, why)
		return
	}
	verdict, done := x.session.Judge(asked)
	defer done()
	if !verdict.Allowed {
		refuse(w, http.StatusForbidden, verdict.Why)
		return
	}
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		// After other upgrades, above all to HTTP/2, requests would pass
		// unread. Any hop may ignore an upgrade (RFC 9110, section 7.8).
		r.Header.Del("Upgrade")
		r.Header.Del("Http2-Settings")
	}
	// A server may answer while the request still comes.
	_ = controller.EnableFullDuplex() // HTTP/2 is, and says that it cannot be asked
	x.proxy.ServeHTTP(w, r.WithContext(ctx))
}

// stopper ends a request from outside.
type stopper struct {
	cancel     context.CancelFunc
	controller *http.ResponseController

	mu    sync.Mutex
	ended bool
}

func (s *stopper) now() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cancel(); !s.ended {
		// A reader of the request's body notices no context. After the end the
		// deadline would be the next request's.
		_ = s.controller.SetReadDeadline(time.Unix(1, 0)) // a dead connection needs none
	}
}

func (s *stopper) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cancel()
	s.ended = true
}

// odd names what no ordinary client sends, and what would not be sent on as it came.
func (x *exchange) odd(r *http.Request) string {
	u := r.URL
	switch {
	case u.Opaque != "" || u.User != nil || u.Fragment != "":
		return "its HTTP target is neither a path nor a plain URL"
	case u.Scheme != "" && (u.Scheme == "http") != x.session.Plain:
		return "its HTTP target names another scheme than its connection has"
	}
	return ""
}

// prepare makes the request that goes out: as it came, to the host of the
// session. net/http has already taken off what concerns one hop only.
func (x *exchange) prepare(r *httputil.ProxyRequest, scheme string) {
	r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = scheme, x.authority, x.authority
	r.Out.URL.RawQuery, r.Out.URL.ForceQuery = r.In.URL.RawQuery, r.In.URL.ForceQuery
	r.Out.Trailer = r.In.Trailer // filled in when the body has come
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		if values, ok := r.In.Header[name]; ok {
			r.Out.Header[name] = values // the program's own; we add none
		}
	}
}

// failed answers for a host that did not answer.
func (x *exchange) failed(w http.ResponseWriter, r *http.Request, err error) {
	var refused *egress.Refused
	switch {
	case errors.As(err, &refused):
		refuse(w, http.StatusForbidden, refused.Why)
	case r.Context().Err() != nil:
		panic(http.ErrAbortHandler) // the client is gone, or a new revision wants it gone
	default:
		x.session.Failed(err)
		refuse(w, http.StatusBadGateway, "the request to the host failed: "+err.Error())
	}
}

// refuse says why in words that a program shows or logs.
func refuse(w http.ResponseWriter, code int, why string) {
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, "litterbox: "+why+"\n") // a client that is gone reads nothing
}
