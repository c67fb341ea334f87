// Package mcp_test drives the true litterbox mcp with the SDK's client, over
// both transports and both kinds of the protocol, and attacks it.
//
// Start reading at connect; tools_linux_test.go has what every tool does.
package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/litterbox-sandbox/litterbox/test/program"
)

var built *program.Built

func TestMain(m *testing.M) { os.Exit(program.Main(m, func(b *program.Built) { built = b })) }

// The revisions tried: the newest, which has no sessions, and the last with sessions.
const (
	newest   = "2026-07-28"
	sessions = "2025-11-25"
)

// client is an agent's client.
type client struct {
	*testing.T
	host     *program.Host
	session  *sdk.ClientSession
	server   *exec.Cmd // of this client alone; nil over HTTP
	stdin    io.Closer // of that server
	handle   string    // the session, where the client has to name it
	progress chan *sdk.ProgressNotificationParams
	schemas  map[string]*jsonschema.Resolved // of results
}

func deadline(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// command prepares litterbox with the environment of a host.
func command(h *program.Host, args ...string) *exec.Cmd {
	cmd := exec.Command(h.Program("litterbox"), args...)
	cmd.Dir, cmd.Env, cmd.Stderr = h.Repo, h.Env, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	return cmd
}

// connect starts a server of its own for one client, over stdio.
func connect(t *testing.T, h *program.Host, revision string, args ...string) *client {
	t.Helper()
	return attach(t, h, command(h, append([]string{"mcp", "--structured"}, args...)...), revision)
}

// attach starts a server and connects a client to it.
func attach(t *testing.T, h *program.Host, cmd *exec.Cmd, revision string) *client {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// The client's own Close waits for answers; this is the end of the server.
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	c := dial(t, h, &sdk.IOTransport{Reader: out, Writer: in}, revision)
	c.server, c.stdin = cmd, in
	return c
}

// dial connects a client.
func dial(t *testing.T, h *program.Host, transport sdk.Transport, revision string) *client {
	t.Helper()
	c := &client{T: t, host: h, progress: make(chan *sdk.ProgressNotificationParams, 1000), schemas: map[string]*jsonschema.Resolved{}}
	made := sdk.NewClient(&sdk.Implementation{Name: "test-agent", Version: "1.2.3"}, &sdk.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
			select {
			case c.progress <- r.Params:
			default:
			}
		},
	})
	var err error
	if c.session, err = made.Connect(deadline(t), transport, &sdk.ClientSessionOptions{ProtocolVersion: revision}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.session.Close() }) // some tests have ended it before
	if got := c.session.InitializeResult().ProtocolVersion; got != revision {
		t.Fatalf("it speaks %q, asked for %q", got, revision)
	}
	tools, err := c.session.ListTools(deadline(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range tools.Tools {
		text, err := json.Marshal(tool.OutputSchema)
		if err != nil {
			t.Fatal(err)
		}
		var schema jsonschema.Schema
		if err := json.Unmarshal(text, &schema); err != nil {
			t.Fatal(err)
		}
		if c.schemas[tool.Name], err = schema.Resolve(nil); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// web starts one HTTP server and gives a transport to it for each call.
func web(t *testing.T, h *program.Host, args ...string) (cmd *exec.Cmd, url, token string) {
	t.Helper()
	cmd = command(h, append([]string{"mcp", "--structured", "--http", "127.0.0.1:0"}, args...)...)
	url, token = listen(t, cmd)
	return cmd, url, token
}

// listen starts an HTTP server and reads where it listens.
func listen(t *testing.T, cmd *exec.Cmd) (url, token string) {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	for (url == "" || token == "") && lines.Scan() {
		switch word, value, _ := strings.Cut(lines.Text(), " "); word {
		case "url":
			url = strings.TrimSpace(value)
		case "token":
			token = value
		}
	}
	if url == "" || token == "" {
		t.Fatalf("the server said no url and token: %q %q", url, token)
	}
	return url, token
}

// bearer adds the token to every request.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

func over(url, token string) sdk.Transport {
	return &sdk.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: bearer(token)}}
}

type args = map[string]any

// answer is a result, taken apart.
type answer struct {
	text    string
	data    map[string]any
	content []sdk.Content
	kind    string // of an error; empty for a result
	next    string
}

func (a answer) str(key string) string { s, _ := a.data[key].(string); return s }
func (a answer) num(key string) int    { n, _ := a.data[key].(float64); return int(n) }
func (a answer) is(key string) bool    { b, _ := a.data[key].(bool); return b }
func (a answer) strs(key string) []string {
	var all []string
	list, _ := a.data[key].([]any)
	for _, one := range list {
		if s, ok := one.(string); ok {
			all = append(all, s)
			continue
		}
		all = append(all, fmt.Sprint(one))
	}
	return all
}

// raw calls a tool; its error is the protocol's.
func (c *client) raw(ctx context.Context, name string, arguments any) (*sdk.CallToolResult, error) {
	if given, ok := arguments.(args); ok && c.handle != "" {
		if _, named := given["session"]; !named {
			with := args{"session": c.handle}
			for key, value := range given {
				with[key] = value
			}
			arguments = with
		}
	}
	params := &sdk.CallToolParams{Name: name, Arguments: arguments}
	params.SetProgressToken(name)
	return c.session.CallTool(ctx, params)
}

// call calls a tool and checks what must hold for every answer.
func (c *client) call(name string, arguments any) answer {
	c.Helper()
	return c.callIn(deadline(c.T), name, arguments)
}

func (c *client) callIn(ctx context.Context, name string, arguments any) answer {
	c.Helper()
	result, err := c.raw(ctx, name, arguments)
	if err != nil {
		c.Fatalf("%s %.300v: %v", name, arguments, err)
	}
	if len(result.Content) == 0 {
		c.Fatalf("%s: an answer without content", name)
	}
	text, ok := result.Content[0].(*sdk.TextContent)
	if !ok {
		c.Fatalf("%s: the answer begins with %T", name, result.Content[0])
	}
	a := answer{text: text.Text, content: result.Content}
	// A file is shown as it is, or sandbox-edit could not replace the text that
	// was read.
	raw := name == "sandbox-read"
	if i := strings.IndexFunc(text.Text, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 }); i >= 0 && !raw {
		c.Errorf("%s: a control character at %d of %q", name, i, text.Text)
	}
	if result.IsError {
		about, _ := result.Meta["io.github.litterbox-sandbox/error"].(map[string]any)
		a.kind, _ = about["kind"].(string)
		a.next, _ = about["next"].(string)
		cause, _ := about["cause"].(string)
		if a.kind == "" || a.next == "" || cause == "" || a.text != "error: "+cause+"\nkind: "+a.kind+"\nnext: "+a.next || result.StructuredContent != nil {
			c.Errorf("%s: an error without kind, cause and next step: %q, %v", name, a.text, result.Meta)
		}
		return a
	}
	if a.data, ok = result.StructuredContent.(map[string]any); !ok {
		c.Fatalf("%s: no structure: %v", name, result.StructuredContent)
	}
	own := strings.ReplaceAll(name, "_", "-") // it may be called by another spelling
	if err := c.schemas[own[strings.LastIndex(own, "sandbox-"):]].Validate(result.StructuredContent); err != nil {
		c.Errorf("%s: the structure does not fit its schema: %v\n%v", name, err, a.data)
	}
	if session := a.str("session"); session != "" {
		c.handle = session
	}
	return a
}

// must calls a tool that must succeed.
func (c *client) must(name string, arguments any) answer {
	c.Helper()
	a := c.call(name, arguments)
	if a.kind != "" {
		c.Fatalf("%s %.300v: %s", name, arguments, a.text)
	}
	return a
}

// fails calls a tool that must fail in a certain way.
func (c *client) fails(kind, name string, arguments any, words ...string) {
	c.Helper()
	a := c.call(name, arguments)
	if a.kind != kind {
		c.Errorf("%s %.300v: kind %q, want %q: %.500s", name, arguments, a.kind, kind, a.text)
		return
	}
	for _, word := range words {
		if !strings.Contains(a.text, word) {
			c.Errorf("%s %.300v: no %q in %q", name, arguments, word, a.text)
		}
	}
}

// do runs a command that must succeed.
func (c *client) do(script string) string {
	c.Helper()
	a := c.must("sandbox-exec", args{"command": script, "message": "test"})
	if a.num("exit_code") != 0 {
		c.Fatalf("%s: %s", script, a.text)
	}
	return strings.TrimSuffix(a.str("stdout"), "\n")
}

// everywhere runs a test over both transports and both kinds of the protocol.
func everywhere(t *testing.T, test func(t *testing.T, h *program.Host, c *client)) {
	for _, revision := range []string{newest, sessions} {
		t.Run("stdio "+revision, func(t *testing.T) {
			t.Parallel()
			h := built.New(t)
			test(t, h, connect(t, h, revision))
		})
		t.Run("http "+revision, func(t *testing.T) {
			t.Parallel()
			h := built.New(t)
			_, url, token := web(t, h)
			test(t, h, dial(t, h, over(url, token), revision))
		})
	}
}
