package mcp_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"
)

// request sends one HTTP request as a stranger.
func request(t *testing.T, url string, change func(*http.Request)) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(deadline(t), http.MethodPost, url, strings.NewReader(
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	change(r)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// Only a client with the token gets in over HTTP, and no page in a browser.
// Clients without the token may hold every connection that strangers get, with
// heads that never end and bodies of refused requests: one with the token gets in.
func TestStrangersHoldTheDoor(t *testing.T) {
	t.Parallel()
	h := built.New(t)
	_, address, token := web(t, h)
	server, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for i := range 700 {
		conn, err := net.Dial("tcp", server.Host)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		text := "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n"
		if i%2 == 0 {
			text += "\r\n{" // refused at once, and the body goes on for ever
		}
		if _, err := io.WriteString(conn, text); err != nil {
			continue // another stranger has taken the place
		}
		if i%70 == 0 { // the control: they do reach the server
			answer, _ := bufio.NewReader(conn).ReadString('\n')
			if strings.Contains(answer, "401") {
				refused++
			}
		}
	}
	if refused == 0 {
		t.Error("control: no stranger was ever answered")
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	client := &http.Client{Timeout: time.Minute}
	answer, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Errorf("with the token: %s", answer.Status)
	}
}

func TestHTTPIsGuarded(t *testing.T) {
	t.Parallel()
	h := built.New(t)
	_, url, token := web(t, h)
	with := func(key, value string) func(*http.Request) {
		return func(r *http.Request) {
			r.Header.Set("Authorization", "Bearer "+token)
			r.Header.Set(key, value)
			if key == "Host" {
				r.Host = value
			}
		}
	}
	for name, c := range map[string]struct {
		change func(*http.Request)
		code   int
	}{
		"the control":               {with("X", "y"), 200},
		"no token":                  {func(*http.Request) {}, 401},
		"a wrong token":             {func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token[:20]+"AAAAAA") }, 401},
		"a part of the token":       {func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token[:5]) }, 401},
		"the token as a password":   {func(r *http.Request) { r.SetBasicAuth("x", token) }, 401},
		"the token in the address":  {func(r *http.Request) { r.URL.RawQuery = "token=" + token }, 401},
		"a name bound to us":        {with("Host", "evil.example.com"), 403},
		"that name with our port":   {with("Host", "evil.example.com:80"), 403},
		"a name that looks like us": {with("Host", "localhost.evil.example.com"), 403},
		"localhost":                 {with("Host", "localhost:1"), 200},
		"IPv6 loopback":             {with("Host", "[::1]:80"), 200},
		"a page elsewhere":          {with("Origin", "https://evil.example.com"), 403},
		"a sandboxed page":          {with("Origin", "null"), 403},
		"a local file":              {with("Origin", "file://"), 403},
		"a page that looks local":   {with("Origin", "http://127.0.0.1.evil.example.com"), 403},
		"a page of ours":            {with("Origin", "http://localhost:6274"), 200},
		"another path":              {func(r *http.Request) { with("X", "y")(r); r.URL.Path = "/other" }, 404},
		"another method":            {func(r *http.Request) { with("X", "y")(r); r.Method = http.MethodPut }, 405},
		"a session made up":         {with("Mcp-Session-Id", "AAAA"), 404},
	} {
		if code, body := request(t, url, c.change); code != c.code {
			t.Errorf("%s: %d, want %d: %.200s", name, code, c.code, body)
		}
	}
	// The sessions of the newest revision cannot be guessed or invented.
	other := dial(t, h, over(url, token), newest)
	other.handle = "AAAAAAAAAAAAAAAAAAAAAAAAAA"
	other.fails("not_found", "sandbox-read", args{"path": "README"}, "has ended")
	other.handle = ""
	other.fails("invalid", "sandbox-read", args{"path": "README"}, "session is missing")

	// An address that others could reach is refused, unless it is named explicitly.
	for _, address := range []string{":0", "0.0.0.0:0", "[::]:0", "192.0.2.1:80", "example.com:80", "nonsense"} {
		if got := h.Litterbox("mcp", "--http", address); got.Code == 0 || strings.Contains(got.Stdout, "token") {
			t.Errorf("%s: %+v", address, got)
		}
	}
	// Token files: made private, and refused when they are not.
	file := h.Dir + "/token"
	cmd := command(h, "mcp", "--structured", "--http", "127.0.0.1:0", "--token-file", file)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	made, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	fresh := strings.TrimSpace(strings.TrimPrefix(line, "url"))
	if code, _ := request(t, fresh, func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(made))) }); code != 200 {
		t.Errorf("with the token of the file: %d", code)
	}
	_ = cmd.Process.Signal(os.Interrupt)
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	if got := h.Litterbox("mcp", "--http", "127.0.0.1:0", "--token-file", file); got.Code != 7 || !strings.Contains(got.Stderr, "others can read it") {
		t.Errorf("%+v", got)
	}
}
