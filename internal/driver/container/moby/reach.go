package moby

import (
	"context"
	"io"
	"net"
	"path/filepath"
	"time"

	"github.com/moby/moby/client"

	"github.com/litterbox-sandbox/litterbox/internal/driver/container"
)

// reaching returns the options of a client for an address. env is ssh's.
func reaching(address string, env []string) []client.Opt {
	host, dir := container.Certificates(address)
	switch {
	case container.OverSSH(address):
		// To the client it is a socket: it asks no proxy, and dials as it is told.
		return []client.Opt{client.WithHost("unix:///ssh"), client.WithDialContext(func(ctx context.Context, _, _ string) (net.Conn, error) {
			stream, err := container.Reach(ctx, address, env)
			if err != nil {
				return nil, &unreached{err}
			}
			return conn{stream}, nil
		})}
	case dir != "":
		return []client.Opt{client.WithHost(host), client.WithTLSClientConfig(filepath.Join(dir, "ca.pem"), filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"))}
	}
	return []client.Opt{client.WithHost(host)}
}

// unreached is why ssh did not reach an engine.
type unreached struct{ error }

func (u *unreached) Unwrap() error { return u.error }

// conn is a stream as the client library wants it. The library sets no deadlines;
// it closes.
type conn struct{ io.ReadWriteCloser }

// CloseWrite ends what the engine reads.
func (c conn) CloseWrite() error {
	if half, ok := c.ReadWriteCloser.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

func (conn) LocalAddr() net.Addr              { return address{} }
func (conn) RemoteAddr() net.Addr             { return address{} }
func (conn) SetDeadline(time.Time) error      { return nil }
func (conn) SetReadDeadline(time.Time) error  { return nil }
func (conn) SetWriteDeadline(time.Time) error { return nil }

// address is the address of a stream, which has none.
type address struct{}

func (address) Network() string { return "ssh" }
func (address) String() string  { return "ssh" }
