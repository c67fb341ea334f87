package egress

import (
	"bytes"
	"net"
	"net/url"
	"testing"
	"time"
)

// answers is a proxy that says what it likes and listens to nothing.
type answers struct{ bytes.Reader }

func (*answers) Write(p []byte) (int, error)      { return len(p), nil }
func (*answers) Close() error                     { return nil }
func (*answers) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (*answers) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (*answers) SetDeadline(time.Time) error      { return nil }
func (*answers) SetReadDeadline(time.Time) error  { return nil }
func (*answers) SetWriteDeadline(time.Time) error { return nil }

// FuzzTunnel lets the proxy of the human's network answer anything. Bytes
// after its answer belong to the connection, every one.
func FuzzTunnel(f *testing.F) {
	f.Add("socks5h", []byte("\x05\x00\x05\x00\x00\x01\x7f\x00\x00\x01\x00\x50rest"))
	f.Add("socks5", []byte("\x05\x02\x01\x00\x05\x00\x00\x03\x04name\x00\x50rest"))
	f.Add("socks5", []byte("\x05\x00\x05\x00\x00\x04"))
	f.Add("http", []byte("HTTP/1.1 200 OK\r\nX: y\r\n\r\nrest"))
	f.Add("http", []byte("HTTP/1.0 407 \x1b[2J\r\n\r\n"))
	f.Fuzz(func(t *testing.T, scheme string, said []byte) {
		proxy := &url.URL{Scheme: "http", Host: "proxy.example:1", User: url.UserPassword("me", "secret")}
		if len(scheme) > 5 && scheme[:5] == "socks" {
			proxy.Scheme = "socks5"
		}
		conn := &answers{*bytes.NewReader(said)}
		err := tunnel(t.Context(), conn, proxy, Target{Host: "api.example.com", Port: 443}, time.Now().Add(time.Minute))
		if err != nil {
			for _, c := range []byte(err.Error()) {
				if c < ' ' || c == 0x7f {
					t.Fatalf("%q would write to a terminal", err)
				}
			}
			return
		}
		rest := said[len(said)-conn.Len():]
		if proxy.Scheme == "http" && !bytes.HasSuffix(said[:len(said)-len(rest)], []byte("\r\n\r\n")) {
			t.Fatalf("of %q, %q is left to the connection", said, rest)
		}
	})
}
