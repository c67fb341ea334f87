package egress_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// fields encodes a header block, without checking its content.
func fields(pairs ...string) []byte {
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for n := 0; n < len(pairs); n += 2 {
		_ = encoder.WriteField(hpack.HeaderField{Name: pairs[n], Value: pairs[n+1]})
	}
	return block.Bytes()
}

// badTrailers are fields that no program may send.
var badTrailers = [][]string{{"x-bad", "a\x01b"}, {"x-bad", "a\nb"}, {"X-Upper", "a"}, {"x bad", "a"}, {":status", "200"}, {"x-bad", "\x00", "x-good", "end"}}

// answerTwo speaks HTTP/2 as a server, and ends each answer with trailers.
func answerTwo(conn net.Conn, trailers []string) {
	preface := make([]byte, len(http2.ClientPreface))
	if _, err := io.ReadFull(conn, preface); err != nil {
		return
	}
	framer := http2.NewFramer(conn, conn)
	_ = framer.WriteSettings()
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			return
		}
		switch f := frame.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() {
				_ = framer.WriteSettingsAck()
			}
		case *http2.HeadersFrame:
			_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: f.StreamID, EndHeaders: true, BlockFragment: fields(":status", "200", "content-type", "text/plain")})
			_ = framer.WriteData(f.StreamID, false, []byte("hello"))
			_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: f.StreamID, EndHeaders: true, EndStream: true, BlockFragment: fields(trailers...)})
		}
	}
}

// An exchange ends although its trailers have characters that no trailer may
// have: the waiting client is told.
func TestTrailersWithInvalidCharacters(t *testing.T) {
	real := httptest.NewTLSServer(nil)
	t.Cleanup(real.Close)
	certificates := real.TLS.Certificates
	for _, trailers := range badTrailers {
		for _, upstream := range []string{"http/1.1", "h2"} {
			w := newWithSecrets(t, "example.com")
			w.serve(internet+":443", func(c *net.TCPConn) {
				conn := tls.Server(c, &tls.Config{Certificates: certificates, NextProtos: []string{upstream}})
				defer conn.Close()
				if upstream == "h2" {
					answerTwo(conn, trailers)
					return
				}
				if _, err := http.ReadRequest(bufio.NewReader(conn)); err != nil {
					return
				}
				answer := "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n5\r\nhello\r\n0\r\n"
				for n := 0; n < len(trailers); n += 2 {
					answer += trailers[n] + ": " + trailers[n+1] + "\r\n"
				}
				_, _ = io.WriteString(conn, answer+"\r\n")
			})
			for _, protocol := range []string{"1", "2"} {
				c := w.browser(real, protocol)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // for each: setting up takes time too
				response, err := c.Do(newRequest(t, "GET", "https://example.com/", "").WithContext(ctx))
				if err == nil {
					_, err = io.Copy(io.Discard, response.Body)
					_ = response.Body.Close()
					for name, values := range response.Trailer {
						if strings.ContainsAny(name+strings.Join(values, ""), "\x00\x01\n :") {
							t.Errorf("%q from %s came over HTTP/%s as %q", trailers, upstream, protocol, response.Trailer)
						}
					}
				}
				cancel()
				if errors.Is(err, context.DeadlineExceeded) {
					t.Fatalf("%q from %s over HTTP/%s: the exchange never ends", trailers, upstream, protocol)
				}
			}
		}
	}
}

// The same from inside, to a server that reads the request to its end.
func TestRequestTrailersWithInvalidCharacters(t *testing.T) {
	for _, two := range []bool{false, true} {
		w := newWithSecrets(t, "example.com")
		w.web(internet+":443", two, func(rw http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
		})
		for _, trailers := range badTrailers {
			conn := w.secure("h2")
			if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			_, err := io.WriteString(conn, http2.ClientPreface)
			framer := http2.NewFramer(conn, conn)
			if err := errors.Join(err, framer.WriteSettings(),
				framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndHeaders: true, BlockFragment: fields(":method", "POST", ":scheme", "https", ":authority", "example.com", ":path", "/", "trailer", "x-bad")}),
				framer.WriteData(1, false, []byte("hello")),
				framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndHeaders: true, EndStream: true, BlockFragment: fields(trailers...)})); err != nil {
				t.Fatal(err)
			}
			for ended := false; !ended; {
				frame, err := framer.ReadFrame()
				if errors.Is(err, os.ErrDeadlineExceeded) {
					t.Fatalf("%q: the exchange never ends: %v", trailers, err)
				}
				if err != nil { // the connection ended, with a reset if something was not read
					break
				}
				switch f := frame.(type) {
				case *http2.RSTStreamFrame, *http2.GoAwayFrame:
					ended = true
				case *http2.HeadersFrame:
					ended = f.StreamEnded()
				case *http2.DataFrame:
					ended = f.StreamEnded()
				}
			}
			_ = conn.Close()
		}
	}
}
