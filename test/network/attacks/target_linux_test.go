package attacks_test

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/litterbox-sandbox/litterbox/test/network/world"
)

// target counts the visitors that reach it.
type target struct{ n atomic.Int64 }

func (a *target) arrived() int64 { return a.n.Load() }

// web counts a connection and answers whatever it says.
func (a *target) web(conn net.Conn) {
	a.n.Add(1)
	_, _ = conn.Read(make([]byte, 4096))
	_, _ = io.WriteString(conn, "HTTP/1.0 200 OK\r\nContent-Length: 8\r\n\r\nreached\n")
}

// secure is web within TLS.
func (a *target) secure(t *testing.T, names ...string) func(net.Conn) {
	t.Helper()
	certificate, err := outside.Certificate(names...)
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	return func(conn net.Conn) {
		a.n.Add(1)
		a.web(tls.Server(conn, config))
	}
}

// datagrams counts and answers them.
func (a *target) datagrams(conn net.PacketConn) {
	buffer := make([]byte, 4096)
	for {
		n, from, err := conn.ReadFrom(buffer)
		if err != nil {
			return // closed
		}
		a.n.Add(1)
		_, _ = conn.WriteTo(buffer[:n], from)
	}
}

// bad is the word for a tenant that no rule allows, at a host that is shared
// with one that is allowed.
const bad = "evil"

// shared is a server that many names lead to, as at a content network. It
// counts requests for the bad tenant, and understands everything.
func (a *target) shared(conn net.Conn) {
	buffer := make([]byte, 8192)
	for {
		n, err := conn.Read(buffer)
		if bytes.Contains(bytes.ToLower(buffer[:n]), []byte(bad)) {
			a.n.Add(1)
		}
		if err != nil {
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
	}
}

// fronts starts a shared server: port 80 for rude requests, 443 for TLS of any
// name, 8080 for HTTP/2 in the clear.
func (a *target) fronts(t *testing.T, h *world.Host) {
	t.Helper()
	h.Serve(t, 80, a.shared)
	certificate, err := outside.Certificate(h.Name, bad+".example")
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			if hello.ServerName == "" || strings.Contains(strings.ToLower(hello.ServerName), bad) {
				a.n.Add(1)
			}
			return nil, nil
		}}
	h.Serve(t, 443, func(conn net.Conn) { a.shared(tls.Server(conn, config)) })
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Protocols: &protocols, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.Host, bad) {
			a.n.Add(1)
		}
	})}
	t.Cleanup(func() { _ = server.Close() })
	for _, listener := range h.Listen(t, 8080) {
		go func() { _ = server.Serve(listener) }()
	}
}
