package clients_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/websocket"

	"github.com/litterbox-sandbox/litterbox/test/network/world"
)

// webSite serves plain HTTP on port 80 and TLS on 443 of a host, HTTP/1 and
// HTTP/2 on both.
func webSite(t *testing.T, h *world.Host, handler http.Handler) {
	t.Helper()
	certificate, err := outside.Certificate(h.Name)
	if err != nil {
		t.Fatal(err)
	}
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Handler: handler, Protocols: &protocols, ReadHeaderTimeout: time.Minute,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}}
	for _, listener := range h.Listen(t, 80) {
		go func() { _ = server.Serve(listener) }()
	}
	for _, listener := range h.Listen(t, 443) {
		go func() { _ = server.ServeTLS(listener, "", "") }()
	}
	t.Cleanup(func() { _ = server.Close() })
}

// protocol answers with the protocol of the request and its body.
func protocol() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(w, "%s %s %s\n", r.Proto, r.Method, body)
	})
	mux.HandleFunc("/slow", func(w http.ResponseWriter, r *http.Request) {
		for _, c := range "slowly" {
			_, _ = fmt.Fprintf(w, "%c", c)
			_ = http.NewResponseController(w).Flush()
			time.Sleep(50 * time.Millisecond) // what makes this server a slow one
		}
	})
	mux.Handle("/socket", websocket.Server{Handler: func(conn *websocket.Conn) {
		_, _ = conn.Write([]byte("welcome")) // the server speaks first
		_, _ = io.Copy(conn, conn)
	}})
	return mux
}

// web makes a web client: script has HOST in place of the host's name.
func web(name, want, script string, rules []string, needs ...string) client {
	return client{Name: name, Needs: needs, Want: want, Serve: func(t *testing.T) ([]string, string) {
		h := outside.Host(strings.ReplaceAll(strings.ToLower(name), " ", "-") + ".outside.example")
		webSite(t, h, protocol())
		var named []string
		for _, rule := range rules {
			named = append(named, strings.ReplaceAll(rule, "HOST", h.Name))
		}
		return named, strings.ReplaceAll(script, "HOST", h.Name)
	}}
}

func webClients() []client {
	plain, secure := []string{"http://HOST"}, []string{"HOST:443"}
	const curl = "curl -sSf -m 30 --cacert ca.pem "
	return []client{
		web("curl with HTTP 1", "HTTP/1.1 POST one", curl+"-d one http://HOST/", plain, "curl"),
		web("curl with HTTP 2 in the clear", "HTTP/2.0 POST two", curl+"--http2-prior-knowledge -d two http://HOST/", plain, "curl"),
		web("curl with TLS", "HTTP/1.1 GET", curl+"--http1.1 https://HOST/", secure, "curl"),
		web("curl with HTTP 2", "HTTP/2.0 POST two", curl+"--http2 -d two https://HOST/", secure, "curl"),
		web("curl over IPv6", "HTTP/2.0 GET", curl+"-6 https://HOST/", secure, "curl"),
		web("a slow server", "slowly", curl+"https://HOST/slow", secure, "curl"),
		web("many at once", "100", "seq 100 | xargs -P 20 -I{} "+curl+"https://HOST/{} | grep -c HTTP", secure, "curl"),
		web("wildcard", "HTTP/2.0 GET", curl+"https://HOST/", []string{"*.outside.example:443"}, "curl"),
		web("python", "HTTP/1.1 GET", `python3 -c '
import ssl, urllib.request
print(urllib.request.urlopen("https://HOST/", timeout=30, context=ssl.create_default_context(cafile="ca.pem")).read().decode())'`, secure, "python3"),
		web("node", "HTTP/1.1 GET\nHTTP/2.0 GET", `cat > /tmp/n.js <<'EOF'
const https = require("https"), http2 = require("http2"), ca = require("fs").readFileSync("ca.pem");
const fail = e => { console.error(e); process.exit(1) };
https.get("https://HOST/", {ca}, r => r.on("data", d => {
  console.log(d.toString().trim());
  const session = http2.connect("https://HOST/", {ca}).on("error", fail);
  session.request({":path": "/"}).on("data", d => console.log(d.toString().trim())).on("end", () => session.close()).on("error", fail).end();
})).on("error", fail);
EOF
node /tmp/n.js`, secure, "node"),
		web("websocket", "welcome\nhello\nagain", webSocket("http"), plain, "python3"),
		web("websocket over TLS", "welcome\nhello\nagain", webSocket("https"), secure, "python3"),
	}
}

// webSocket is a client of RFC 6455 that waits for the server's word, and says
// something twice.
func webSocket(scheme string) string {
	return `python3 -c '
import socket, ssl, os, struct
scheme = "` + scheme + `"
s = socket.create_connection(("HOST", 443 if scheme == "https" else 80), 30)
if scheme == "https": s = ssl.create_default_context(cafile="ca.pem").wrap_socket(s, server_hostname="HOST")
s.sendall(b"GET /socket HTTP/1.1\r\nHost: HOST\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nOrigin: http://HOST\r\n"
          b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
f = s.makefile("rb")
assert b" 101 " in f.readline()
while f.readline() != b"\r\n": pass
def receive():
    head = f.read(2); return f.read(head[1] & 127).decode()
print(receive())
for word in (b"hello", b"again"):
    mask = os.urandom(4)
    s.sendall(bytes([0x82, 0x80 | len(word)]) + mask + bytes(c ^ mask[i % 4] for i, c in enumerate(word)))
    print(receive())
'`
}
