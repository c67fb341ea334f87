package egress_test

import (
	"bytes"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// overheard is all that servers were sent, byte for byte.
type overheard struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (o *overheard) take() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	defer o.all.Reset()
	return o.all.String()
}

// overhears is a listener that keeps everything that comes in.
type overhears struct {
	net.Listener
	to *overheard
}

func (l overhears) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	return overheardConn{conn, l.to}, err
}

type overheardConn struct {
	net.Conn
	to *overheard
}

func (c overheardConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.to.mu.Lock()
	defer c.to.mu.Unlock()
	c.to.all.Write(p[:n])
	return n, err
}

// twoHosts are one name with two ports: a secret is bound to 8080, and 80 is
// any other host. Both tell back what they were told.
type twoHosts struct {
	*withSecrets
	bound, other overheard
}

func newTwoHosts(t testing.TB) *twoHosts {
	w := &twoHosts{withSecrets: newWithSecrets(t, "http://plain.example.com", "http://plain.example.com:8080")}
	for port, to := range map[string]*overheard{":80": &w.other, ":8080": &w.bound} {
		s := httptest.NewUnstartedServer(http.HandlerFunc(tellBack))
		s.Listener = overhears{s.Listener, to}
		s.Start()
		t.Cleanup(s.Close)
		w.place(internet+port, s.Listener.Addr())
	}
	return w
}

// say sends bytes to a port in pieces of the given sizes, again and again, and
// gives what comes back until it ends, or until nothing has come for a while.
// In the bytes \x00 stands for the placeholder and \x01
// for the password of Basic that it makes.
func (w *twoHosts) say(port uint16, text string, sizes []byte, patience time.Duration) string {
	text = strings.NewReplacer("\x00", w.key, "\x01", base64.StdEncoding.EncodeToString([]byte("me:"+w.key))).Replace(text)
	conn := w.openName("plain.example.com", port)
	defer conn.Close()
	answered := make(chan string, 1)
	go func() {
		var answer []byte
		for piece := make([]byte, 32<<10); ; {
			_ = conn.SetReadDeadline(time.Now().Add(patience))
			n, err := conn.Read(piece)
			answer = append(answer, piece[:n]...)
			if err != nil { // it may be cut off at any byte
				break
			}
		}
		answered <- string(answer)
	}()
	for n := 0; text != ""; n++ {
		size := len(text)
		if len(sizes) > 0 {
			size = min(size, int(sizes[n%len(sizes)])+1)
		}
		if _, err := io.WriteString(conn, text[:size]); err != nil {
			break // it was refused
		}
		text = text[size:]
	}
	// A client that ends its stream has gone: its request is not waited for.
	return <-answered
}

// saidSeeds are requests with the placeholder in every place.
func saidSeeds() []string {
	const end = "Host: plain.example.com:8080\r\nConnection: close\r\n"
	return []string{
		"GET /?k=\x00 HTTP/1.1\r\n" + end + "\r\n",
		"GET / HTTP/1.1\r\nX-Key: Bearer \x00\r\n" + end + "\r\n",
		"GET / HTTP/1.1\r\nAuthorization: Basic \x01\r\n" + end + "\r\n",
		"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" + end + "\r\n41\r\n\x00\r\n0\r\nX-Trailer: \x00\r\n\r\n",
		"POST / HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 76\r\n" + end + "\r\n{\"key\":\"\x00\"}",
		"GET / HTTP/1.1\r\nHost: plain.example.com:8080\r\n\r\nGET / HTTP/1.1\r\nX-Key: \x00\r\n" + end + "\r\n",
		"GET / HTTP/1.1\r\nUpgrade: websocket\r\nX: \x00\r\n" + end + "\r\n\x81\x05hello",
		"GET http://plain.example.com:8080/?\x00 HTTP/1.1\r\nHost: plain.example.com\r\n\r\n",
	}
}

// wantNowhere fails for a value that another host was sent, or that came in.
func (w *twoHosts) wantNowhere(t *testing.T, where, text string) {
	t.Helper()
	for _, form := range append(forms(theValue), url.QueryEscape(theValue)) {
		if strings.Contains(text, form) {
			t.Errorf("%s has the value: %q", where, text)
		}
	}
}

// FuzzSecretsElsewhere lets a program inside send any bytes in any pieces, with
// placeholders in them. An unbound host is never sent the value, and the value
// comes in from no host.
func FuzzSecretsElsewhere(f *testing.F) {
	for i, seed := range saidSeeds() {
		f.Add(seed, []byte{byte(i)})
		f.Add(strings.ReplaceAll(seed, ":8080", ""), []byte{255, 0, byte(3 * i)})
	}
	w := newTwoHosts(f)
	// Incomplete requests get no answer.
	const moment = 30 * time.Millisecond
	f.Fuzz(func(t *testing.T, text string, sizes []byte) {
		if len(text) > 4<<10 {
			t.Skip("more than a run has time for")
		}
		w.t = t
		w.wantNowhere(t, "the answer of another host", w.say(80, text, sizes, moment))
		w.wantNowhere(t, "what another host was sent", w.other.take())
		w.wantNowhere(t, "the echo of its own host", w.say(8080, text, sizes, moment))
		w.wantNowhere(t, "what another host was sent for its own", w.other.take())
		w.bound.take()
	})
}

// The control of the fuzz target: the bound host is sent the value, so the
// search would find it.
func TestSecretsElsewhereAreSearched(t *testing.T) {
	w := newTwoHosts(t)
	found := 0
	for _, seed := range saidSeeds()[:3] {
		w.say(8080, seed, []byte{6}, time.Minute)
		if sent := w.bound.take(); strings.Contains(sent, theValue) || strings.Contains(sent, base64.StdEncoding.EncodeToString([]byte("me:"+theValue))) {
			found++
		}
	}
	if found != 3 {
		t.Errorf("of three requests only %d were sent with the value", found)
	}
	if w.say(80, "GET / HTTP/1.1\r\nHost: plain.example.com\r\nX-Key: control\r\nConnection: close\r\n\r\n", nil, time.Minute); !strings.Contains(w.other.take(), "X-Key: control") {
		t.Error("the other host is not reached at all")
	}
}
