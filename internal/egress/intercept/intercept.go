package intercept

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/egress"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// Bounds of what clients of one sandbox can hold here.
const (
	maxConnections = 512
	maxHead        = 32 << 10
	maxStreams     = 100 // of one HTTP/2 connection, as most servers have it
	streamWindow   = 64 << 10
	windowSize     = 256 << 10
	headTimeout    = 10 * time.Second
	idleTimeout    = 10 * time.Minute
)

// Options are what an inspector works with.
type Options struct {
	// Authority is the file of the sandbox's authority, made when it is first
	// needed. It holds the key, so it stays on the host.
	Authority string
	// Roots are files that the sandbox has mounted as its roots; the
	// authority's certificate is appended to each.
	Roots []string
	// Trust verifies the real host; nil means the roots that the host trusts.
	Trust *x509.CertPool
	// Hooks take part in every exchange, the first nearest to the sandbox.
	Hooks []Hook
}

// Inspector implements egress.Inspector. It is safe for concurrent use.
type Inspector struct {
	o Options

	mu        sync.Mutex
	authority *authority
	server    *http.Server
	incoming  handover
	open      int
}

var _ egress.Inspector = (*Inspector)(nil)

// New makes an inspector, which costs nothing until it is used.
func New(o Options) *Inspector { return &Inspector{o: o} }

// Prepare makes the authority, unless it is there, and lets the sandbox trust
// it: programs read their roots when they start, so this comes before the first
// connection. It is called whenever a rule about requests comes into force, and
// twice is safe.
func (i *Inspector) Prepare() error {
	a, err := i.sign()
	if err != nil {
		return err
	}
	for _, path := range i.o.Roots {
		if err := a.publish(path); err != nil {
			return fault.Wrap(fault.Unavailable, err, "cannot let the sandbox trust its own certificate authority")
		}
	}
	return nil
}

func (i *Inspector) sign() (*authority, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.authority != nil && i.authority.fresh(today()) {
		return i.authority, nil
	}
	var err error
	i.authority, err = openAuthority(i.o.Authority)
	return i.authority, err
}

// Inspect implements egress.Inspector.
func (i *Inspector) Inspect(ctx context.Context, conn net.Conn, s *egress.Session) error {
	if !i.enter() {
		return errors.New("the sandbox has too many such connections open")
	}
	defer i.leave()
	one := newExchange(i, conn, s)
	defer one.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	client := net.Conn(one)
	if !s.Plain {
		a, err := i.sign()
		if err != nil {
			return err
		}
		config, err := a.config(s.Name)
		if err != nil {
			return err
		}
		secure := tls.Server(one, config)
		limit, cancel := context.WithTimeout(ctx, headTimeout)
		err = secure.HandshakeContext(limit)
		cancel()
		if err != nil {
			return whyNot(err)
		}
		client = secure
	}
	if !i.serve().put(ctx, client) {
		return errors.New("the connection is gone")
	}
	<-one.done
	return nil
}

// whyNot explains why a handshake ended.
func whyNot(err error) error {
	if op := (*net.OpError)(nil); errors.As(err, &op) && op.Op == "remote error" { // an alert, as crypto/tls words it
		return fmt.Errorf("the program does not trust the sandbox's certificate authority (%w); it has to read SSL_CERT_FILE or /etc/ssl, or be restarted", err)
	}
	return fmt.Errorf("TLS with it failed: %w", err)
}

func (i *Inspector) enter() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.open >= maxConnections {
		return false
	}
	i.open++
	return true
}

func (i *Inspector) leave() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.open--
}

// Client implements egress.Inspector.
func (i *Inspector) Client(ctx context.Context, conn net.Conn, host string) (net.Conn, error) {
	secure := tls.Client(conn, &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: i.o.Trust, ServerName: host})
	return secure, secure.HandshakeContext(ctx)
}

// serve starts the one server, which reads requests from all connections.
func (i *Inspector) serve() handover {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.server != nil {
		return i.incoming
	}
	i.incoming = make(handover)
	i.server = &http.Server{
		Handler: http.HandlerFunc(handle),
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			return context.WithValue(ctx, exchangeKey{}, exchangeOf(conn))
		},
		// For HTTP/2 the server must be told of it here too; each connection
		// comes with its handshake done.
		TLSConfig:         &tls.Config{NextProtos: []string{"h2", "http/1.1"}},
		Protocols:         protocols(true, true),
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreams, MaxReceiveBufferPerConnection: windowSize, MaxReceiveBufferPerStream: streamWindow},
		ReadHeaderTimeout: headTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHead,
		ErrorLog: log.New(io.Discard, "", 0), // errors are the client's, or in an observation
	}
	i.server.Protocols.SetUnencryptedHTTP2(true)
	go func(server *http.Server, l handover) { _ = server.Serve(l) }(i.server, i.incoming) // its listener never ends
	return i.incoming
}

func protocols(one, two bool) *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(one)
	p.SetHTTP2(two)
	return p
}

// handover is a listener that is handed its connections.
type handover chan net.Conn

func (h handover) put(ctx context.Context, conn net.Conn) bool {
	select {
	case h <- conn:
		return true
	case <-ctx.Done():
		return false
	}
}

// Accept implements net.Listener.
func (h handover) Accept() (net.Conn, error) { return <-h, nil }

// Close implements net.Listener; it is not called while the process lives.
func (h handover) Close() error { return nil }

// Addr implements net.Listener.
func (h handover) Addr() net.Addr { return &net.TCPAddr{} }
