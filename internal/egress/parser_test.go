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
	"net/netip"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/egress"
)

// recorded is a connection that keeps what is written and answers nothing.
type recorded struct {
	net.Conn
	in  *bytes.Reader
	out bytes.Buffer
}

func (r *recorded) Write(p []byte) (int, error) { return r.out.Write(p) }
func (r *recorded) Read(p []byte) (int, error)  { return r.in.Read(p) }
func (r *recorded) Close() error                { return nil }

// clientHello is what crypto/tls sends.
func clientHello(config *tls.Config) []byte {
	r := &recorded{in: bytes.NewReader(nil)}
	_ = tls.Client(r, config).HandshakeContext(context.Background()) // ends for want of an answer
	return r.out.Bytes()
}

// theirName is the server name that crypto/tls reads; ok is false when it does
// not get that far.
func theirName(data []byte) (name string, ok bool) {
	stop := errors.New("enough")
	config := &tls.Config{GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		name, ok = hello.ServerName, true
		return nil, stop
	}}
	_ = tls.Server(&recorded{in: bytes.NewReader(data)}, config).HandshakeContext(context.Background()) // ends with stop
	return name, ok
}

// resplit puts a hello into records of size bytes.
func resplit(hello []byte, size int) []byte {
	var out []byte
	for body := hello[5:]; len(body) > 0; {
		n := min(size, len(body))
		out = append(append(out, 22, 3, 1, byte(n>>8), byte(n)), body[:n]...)
		body = body[n:]
	}
	return out
}

func hellos() map[string][]byte {
	plain := clientHello(&tls.Config{ServerName: "a.example", NextProtos: []string{"h2", "http/1.1"}})
	all := map[string][]byte{
		"a.example":         plain,
		"":                  clientHello(&tls.Config{InsecureSkipVerify: true}),
		"old.example":       clientHello(&tls.Config{ServerName: "old.example", MaxVersion: tls.VersionTLS12}),
		"split.example":     resplit(clientHello(&tls.Config{ServerName: "split.example"}), 7),
		"long-name.example": clientHello(&tls.Config{ServerName: "long-name.example"}),
	}
	return all
}

func TestServerName(t *testing.T) {
	for want, hello := range hellos() {
		name, complete, cause := egress.ServerName(hello)
		if name != want || !complete || cause != "" {
			t.Errorf("%q was read as %q, %v, %s", want, name, complete, cause)
		}
		for n := range hello {
			if _, complete, _ := egress.ServerName(hello[:n]); complete {
				t.Fatalf("%q was complete after %d of %d bytes", want, n, len(hello))
			}
		}
		if _, _, cause := egress.ServerName(append(append([]byte(nil), hello[:]...), 0)); cause != "" {
			t.Errorf("%q with the next record's first byte: %s", want, cause)
		}
		// Early data follows at once, and an encrypted ClientHello is inside: the
		// visible name counts.
		early := append(append([]byte(nil), hello...), 23, 3, 3, 0, 3, 'G', 'E', 'T')
		if name, complete, cause := egress.ServerName(early); name != want || !complete || cause != "" {
			t.Errorf("%q with early data was read as %q, %v, %s", want, name, complete, cause)
		}
	}
}

// An encrypted ClientHello comes beside the visible name, which counts: every
// browser sends a random one.
func TestServerNameBesideAnEncryptedOne(t *testing.T) {
	hello := clientHello(&tls.Config{ServerName: "outer.example"})
	hello = extended(hello, 0xfe, 0x0d, 0, 14, 0, 0, 1, 0, 1, 7, 0, 0, 0, 4, 'i', 'n', 'n', 'r')
	if name, complete, cause := egress.ServerName(hello); name != "outer.example" || !complete || cause != "" {
		t.Errorf("read as %q, %v, %s", name, complete, cause)
	}
}

// extended adds an extension to the end of a ClientHello in one record.
func extended(hello []byte, extension ...byte) []byte {
	h := append([]byte(nil), hello...)
	grow := func(at, width int) {
		n := 0
		for i := range width {
			n = n<<8 | int(h[at+i])
		}
		n += len(extension)
		for i := range width {
			h[at+i] = byte(n >> (8 * (width - 1 - i)))
		}
	}
	grow(3, 2) // the record
	grow(6, 3) // the message
	at := 5 + 4 + 34
	at += 1 + int(h[at])                   // session
	at += 2 + int(h[at])<<8 + int(h[at+1]) // suites
	at += 1 + int(h[at])                   // compression
	grow(at, 2)
	return append(h, extension...)
}

func TestServerNameRefuses(t *testing.T) {
	plain := hellos()["a.example"]
	grease := extended(plain, 0xfe, 0x0d, 0, 3, 0, 1, 2)
	if name, complete, cause := egress.ServerName(grease); name != "a.example" || !complete {
		t.Errorf("with an encrypted ClientHello: %q, %v, %s", name, complete, cause)
	}
	for what, hello := range map[string][]byte{
		"a second name":         extended(plain, 0, 0, 0, 6, 0, 4, 0, 0, 1, 'b'),
		"an extension twice":    extended(grease, 0xfe, 0x0d, 0, 0),
		"two names in one":      extended(hellos()[""], 0, 0, 0, 10, 0, 8, 0, 0, 1, 'a', 0, 0, 1, 'b'),
		"an empty name":         extended(hellos()[""], 0, 0, 0, 5, 0, 3, 0, 0, 0),
		"a name of other type":  extended(hellos()[""], 0, 0, 0, 6, 0, 4, 1, 0, 1, 'a'),
		"a name and a rest":     extended(hellos()[""], 0, 0, 0, 7, 0, 4, 0, 0, 1, 'a', 9),
		"half an extension":     extended(plain, 0xfe),
		"an endless extension":  extended(plain, 0xfe, 0x0d, 0xff, 0xff),
		"two messages":          resplit(append(append([]byte(nil), plain...), plain[5:]...), 1<<14),
		"another message":       {22, 3, 1, 0, 4, 2, 0, 0, 0},
		"an empty record":       {22, 3, 1, 0, 0},
		"a message without end": {22, 3, 1, 0, 4, 1, 0xff, 0xff, 0xff},
		"an old version":        {22, 2, 0, 0, 4},
	} {
		if name, complete, cause := egress.ServerName(hello); complete || cause == "" {
			t.Errorf("%s: read as %q", what, name)
		}
	}
}

// Where crypto/tls finds a server name, we find the same or refuse.
func FuzzServerName(f *testing.F) {
	for _, hello := range hellos() {
		f.Add(hello)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		name, complete, _ := egress.ServerName(data)
		if !complete {
			return
		}
		if theirs, ok := theirName(data); ok && strings.TrimSuffix(theirs, ".") != strings.TrimSuffix(name, ".") {
			t.Fatalf("we read %q and crypto/tls %q", name, theirs)
		}
	})
}

// What we take for one request, net/http takes for the same one.
func FuzzReadRequest(f *testing.F) {
	for _, seed := range []string{
		"GET /a?b HTTP/1.1\r\nHost: a.example\r\n\r\n",
		"POST http://a.example/x HTTP/1.1\r\nHost: a.example\r\nContent-Length: 4\r\n\r\n",
		"PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTE: trailers\r\n\r\n",
		"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\r\n",
		"GET / HTTP/1.0\r\nHost: a\r\n\r\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		end := bytes.Index(data, []byte("\r\n\r\n"))
		if end < 0 {
			return
		}
		head, cause := egress.ReadRequest(data[:end+4])
		if cause != "" {
			return
		}
		theirs, err := http.ReadRequest(bufio.NewReader(io.MultiReader(bytes.NewReader(data[:end+4]), strings.NewReader(strings.Repeat("0\r\n\r\n", 4)))))
		if err != nil {
			return // they are stricter, and so is a server like them
		}
		host := head.Host
		if head.Absolute != "" {
			host = head.Absolute
		}
		if theirs.Method != head.Method || theirs.Host != host || theirs.ContentLength != head.Length {
			t.Fatalf("we read %+v and net/http %s %s %d", head, theirs.Method, theirs.Host, theirs.ContentLength)
		}
	})
}

func FuzzPrintable(f *testing.F) {
	for _, seed := range []string{"a.example", "\x1b]0;owned\x07", "a\nb", "\u202eevil", strings.Repeat("é", 400), "\xff\xfe"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		clean := egress.Printable(text)
		if len(clean) > 256 || strings.ContainsAny(clean, "\x1b\n\r\x00\u202e\u2028\u009b") || egress.Printable(clean) != clean {
			t.Fatalf("%q became %q", text, clean)
		}
	})
}

func TestSpecial(t *testing.T) {
	for text, want := range map[string]bool{
		"8.8.8.8": false, "93.184.215.14": false, "2606:2800:21f::1": false, "64:ff9b::808:808": false, "172.32.0.1": false, "100.128.0.1": false, "11.0.0.1": false,
		"10.0.0.1": true, "172.31.255.255": true, "192.168.0.1": true, "127.8.8.8": true, "0.0.0.0": true, "169.254.1.1": true, "100.64.0.1": true,
		"224.0.0.1": true, "255.255.255.255": true, "198.18.0.1": true, "168.63.129.16": true, "::": true, "::1": true, "fe80::1": true, "fd00::1": true,
		"ff02::1": true, "::ffff:10.0.0.1": true, "64:ff9b::a00:1": true, "2002:a00:1::1": true, "fec0::1": true, "::7f00:1": true,
		"::ffff:0:a00:1": true, "::ffff:0:808:808": true, "::808:808": true, "64:ff9b:1::808:808": true, "64:ff9b:2::1": false, "2001:0:808:808::1": true,
		"2606:2800::5efe:808:808": false, "2606:2800::5efe:a00:1": true, "2606:2800::200:5efe:a00:1": true, "2606:2800::300:5efe:a00:1": false,
	} {
		if got := egress.Special(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s is special: %v, want %v", text, got, want)
		}
	}
}
