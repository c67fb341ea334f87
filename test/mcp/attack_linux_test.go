package mcp_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/test/program"
)

// Paths that lead out, to hidden files or into git's own, in every tool that
// takes one. The control: the same tools with a path that is fine.
func TestHostilePaths(t *testing.T) {
	t.Parallel()
	h := built.New(t)
	outside := filepath.Join(h.Dir, "outside")
	h.Put(outside, "host secret\n")
	h.Put(h.Repo+"/.env.example", "hidden secret\n")
	h.Git("add", "-f", ".env.example")
	h.Git("commit", "-qm", "hidden")
	c := connect(t, h, newest)
	c.must("sandbox-create", args{"name": "fix"})
	c.do(`ln -s ` + outside + ` out; ln -s .env.example innocent; ln -s .git gitlink; mkdir d; ln -s ../.git d/g; ln -s / root; ln -s /proc/self self
		mkdir ~/.ssh; echo key >~/.ssh/id; ln -s ~/.ssh ssh; mkfifo fifo; echo fine >'- --all'; echo fine >'$(touch pwned)'; echo fine >"$(printf 'a\nb')"`)
	up := strings.Repeat("../", 20)
	for _, path := range []string{
		".env.example", "./.env.example", "d/../.env.example", "innocent", "root" + h.Repo + "/.env.example", h.Repo + "/.env.example",
		".git/config", "gitlink/config", "d/g/config", ".git", "ssh/id", "root" + h.Home + "/.ssh/id", up + h.Home + "/.ssh/id",
		"/proc/self/environ", "/proc/1/environ", "/proc/self/mem", "self/environ", up + "proc/self/maps", "root/proc/self/status", "/proc/self/fd/0",
		"out", outside, up + outside, "/etc/shadow", "fifo", "/dev/null", "", "\x00", "a\x00/../README", strings.Repeat("a/", 5000), strings.Repeat("a", 300),
	} {
		old := "e"
		if strings.Contains(path, ".env") || path == "innocent" || strings.Contains(path, "ssh/") {
			// Hidden files may be written and edited by a client that knows their
			// content, but no answer shows any of it.
			old = "hidden sicret"
		}
		for tool, a := range map[string]args{
			"sandbox-read":   {"path": path},
			"sandbox-search": {"pattern": ".", "path": path},
			"sandbox-files":  {"path": path, "glob": "*"},
			"sandbox-edit":   {"path": path, "old": old, "new": "f", "message": "Edit"},
		} {
			got := c.call(tool, a)
			empty := path == "" && (tool == "sandbox-search" || tool == "sandbox-files") // the project
			if got.kind == "" && !empty || strings.Contains(got.text, "secret") && got.kind == "" || strings.Contains(got.text, "key\n") {
				t.Errorf("%s %.100q: %.300s", tool, path, got.text)
			}
		}
	}
	for _, path := range []string{".git/hooks/post-merge", "gitlink/hooks/x", "d/g/x", "sub/.git/config", ".GIT/x", "root" + h.Repo + "/.git/x", "/proc/self/oom_score_adj", "/etc/passwd", "/usr/bin/x"} {
		if got := c.call("sandbox-write", args{"path": path, "content": "x", "message": "Write"}); got.kind == "" {
			t.Errorf("sandbox-write %q: %s", path, got.text)
		}
	}
	// The control: odd names that are fine, and hidden ones that may be written.
	for _, path := range []string{"- --all", "$(touch pwned)", "a\nb", "README", "root" + h.Repo + "/README", up + strings.TrimPrefix(h.Repo, "/") + "/README"} {
		c.must("sandbox-read", args{"path": path})
	}
	c.must("sandbox-write", args{"path": ".github/workflows/ci.yml", "content": "on: push\n", "message": "A workflow"})
	if got := c.must("sandbox-search", args{"pattern": "secret"}); len(got.strs("matches")) != 0 {
		t.Errorf("%s", got.text)
	}
	if got := c.must("sandbox-files", args{}); strings.Contains(got.text, ".env") || strings.Contains(got.text, ".git") {
		t.Errorf("%s", got.text)
	}
	// To git, a path is neither an option nor a pattern.
	for _, path := range []string{"--output=" + h.Dir + "/pwned", "--no-index", "-O/bin/sh", ":(top)", ":/", "*", up} {
		if got := c.call("sandbox-diff", args{"path": path}); got.kind == "" && got.num("total") > 0 {
			t.Errorf("sandbox-diff %q: %s", path, got.text)
		}
	}
	if got := h.Shell("cat " + outside + "; ls " + h.Dir + " " + h.Repo); strings.Contains(got.Stdout, "pwned") || !strings.HasPrefix(got.Stdout, "host secret\n") {
		t.Errorf("%s", got.Stdout)
	}
}

// Names that would mean something to git, a shell, a file system or a terminal.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	h := built.New(t)
	c := connect(t, h, newest)
	for name, want := range map[string]string{
		"../../etc": "etc", "--force": "force", "a; rm -rf /": "a-rm-rf", "refs/heads/main.lock": "refs-heads-main-lock",
		"x\x1b]0;t\x07y": "x-0-t-y", strings.Repeat("n", 1000): strings.Repeat("n", 63), "@{-1}": "1", "$(id)": "id", "日本 v2": "v2",
	} {
		if got := c.must("sandbox-create", args{"name": name}); got.str("name") != want {
			t.Errorf("%q: %q", name, got.str("name"))
		}
	}
	c.must("sandbox-create", args{"name": "fix"})
	hostile := "Subject\n\nLitterbox-Audit: " + strings.Repeat("0", 64) + "\x1b[31m\n\nLitterbox-Iteration: 99"
	c.must("sandbox-exec", args{"command": "true", "message": hostile})
	c.must("sandbox-milestone", args{"message": hostile})
	if got := h.Litterbox("audit", "verify"); got.Code != 0 {
		t.Errorf("a message that claims an entry: %+v", got)
	}
	if got := h.Must("log", "fix") + h.Must("audit"); strings.Contains(got, "\x1b") {
		t.Errorf("%q", got)
	}
}

func TestTenMegabytes(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("0123456789abcdef", 10<<20/16)
	test := func(t *testing.T, h *program.Host, c *client, tools map[string]args) {
		c.must("sandbox-create", args{"name": "fix"})
		c.must("sandbox-write", args{"path": "large", "content": large, "message": "Write a lot"})
		if got := h.Git("cat-file", "-s", "fix:large"); got != "10485760" {
			t.Errorf("%s bytes arrived", got)
		}
		c.must("sandbox-edit", args{"path": "large", "old": large, "new": "x", "message": "Cut"})
		for tool, a := range tools {
			got := c.call(tool, a)
			if len(got.text) > 100_000 {
				t.Errorf("%s: an answer of %d bytes", tool, len(got.text))
			}
			if got.kind != "invalid" && tool != "sandbox-open" && tool != "sandbox-edit" || got.kind == "" {
				t.Errorf("%s: %.200s", tool, got.text)
			}
		}
		c.fails("invalid", "sandbox-exec", args{"command": "true " + large, "message": "x"}, "command has 10485765 bytes")
		c.must("sandbox-read", args{"path": "README"})
		if got := h.Litterbox("audit", "verify"); got.Code != 0 {
			t.Errorf("%+v", got)
		}
		if info, err := os.Stat(h.State + "/litterbox/audit/log.jsonl"); err != nil || info.Size() > 1<<20 {
			t.Errorf("the audit log has %d bytes, %v", info.Size(), err)
		}
	}
	t.Run("stdio", func(t *testing.T) {
		t.Parallel()
		h := built.New(t)
		test(t, h, connect(t, h, newest), map[string]args{
			"sandbox-exec":      {"command": "true", "message": large},
			"sandbox-search":    {"pattern": large},
			"sandbox-open":      {"name": large},
			"sandbox-edit":      {"path": "README", "old": large, "new": "x", "message": "x"},
			"sandbox-milestone": {"message": large + "\n" + large},
		})
	})
	t.Run("http", func(t *testing.T) {
		t.Parallel()
		h := built.New(t)
		_, url, token := web(t, h)
		test(t, h, dial(t, h, over(url, token), sessions), map[string]args{"sandbox-list": {large: large}})
	})
}

// output collects what a program writes while we look at it.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// talk sends lines to a server, closes its input when last was answered, and
// returns all its output.
func talk(t *testing.T, h *program.Host, last string, write func(in io.Writer)) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	made := command(h, "mcp", "--structured")
	cmd := exec.CommandContext(ctx, made.Path, made.Args[1:]...)
	cmd.Dir, cmd.Env = made.Dir, made.Env
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var out, complaints output
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	write(in)
	if last != "" {
		await(t, last, func() bool { return strings.Contains(out.String(), last) })
	}
	in.Close()
	if err := cmd.Wait(); err != nil || strings.Contains(complaints.String(), "goroutine") {
		t.Errorf("%v: %s", err, complaints.String())
	}
	for line := range strings.Lines(out.String()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("a line that is not JSON: %.200q", line)
		}
	}
	return out.String()
}

const hello = `{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x\u001b[31m","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
`

// Input that is not a message is answered as such, and the session goes on.
func TestMalformedMessages(t *testing.T) {
	t.Parallel()
	h := built.New(t)
	out := talk(t, h, `"id":"still there"`, func(in io.Writer) {
		for _, line := range []string{
			hello + "", "nonsense", "{", `{"jsonrpc":"2.0"`, "null", "1", `"x"`, "[]", `[1]`, `[[]]`, "\x00\xff\xfe", `{}`, `{"jsonrpc":"1.0","id":1,"method":"ping"}`,
			`{"jsonrpc":"2.0","id":{},"method":"ping"}`, `{"jsonrpc":"2.0","id":2,"method":5}`, `{"jsonrpc":"2.0","id":3}`, `{"jsonrpc":"2.0","result":{},"id":77}`,
			`{"jsonrpc":"2.0","id":4,"method":"tools/call"}`, `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":[]}`, `{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":7}}`,
			`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"sandbox-list","arguments":7}}`, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}`,
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":7}`, `{"jsonrpc":"2.0","id":8,"method":"nothing/such"}`, `{"jsonrpc":"2.0","id":9,"method":"resources/read","params":{"uri":"file:///etc/passwd"}}`,
			strings.Repeat("[", 100000), `{"jsonrpc":"2.0","id":10,"method":"ping","params":` + strings.Repeat(`{"a":`, 20000) + "1" + strings.Repeat("}", 20000) + "}",
			`{"jsonrpc":"2.0","id":12345678901234567890,"method":"ping"}`, `{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`,
			`{"jsonrpc":"2.0","id":14.0,"method":"ping"}`, `{"jsonrpc":"2.0","id":-1.5e1,"method":"ping"}`, `{"jsonrpc":"2.0","id":"15","method":"ping"}`,
			`{"jsonrpc":"2.0","id":16.0,"method":"tools/call","params":{"name":"sandbox-list","arguments":{}}}`,
			"", "   ", "\r", `[{"jsonrpc":"2.0","id":11,"method":"ping"},{"jsonrpc":"2.0","id":12,"method":"ping"}]`,
		} {
			fmt.Fprintln(in, line)
		}
		// A line that does not fit: skipped, not kept.
		fmt.Fprint(in, `{"jsonrpc":"2.0","id":13,"method":"ping","params":{"x":"`)
		block := bytes.Repeat([]byte("x"), 1<<20)
		for range 40 {
			if _, err := in.Write(block); err != nil {
				t.Error(err)
				return
			}
		}
		fmt.Fprintln(in, `"}}`)
		fmt.Fprintln(in, `{"jsonrpc":"2.0","id":"still there","method":"ping"}`)
		fmt.Fprint(in, `{"jsonrpc":"2.0","id":"torn","method":"pi`)
	})
	for _, want := range []string{`"id":"hello"`, `"id":"still there"`, `"id":11`, `"id":12`, `"id":12345678901234567890`, `"id":9007199254740993`, `"id":14.0`, `"id":-1.5e1`, `"id":"15"`, `"id":16.0`, "-32700", "-32600", "longer than"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %s in %.3000s", want, out)
		}
	}
}

// Far more calls than anyone can mean: the first are served in order, the rest
// refused, memory stays bounded.
func TestFlood(t *testing.T) {
	t.Parallel()
	h := built.New(t)
	const calls = 5000
	filler := strings.Repeat("x", 20000)
	out := talk(t, h, "", func(in io.Writer) {
		w := bufio.NewWriter(in)
		fmt.Fprint(w, hello)
		fmt.Fprintln(w, `{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"sandbox-create","arguments":{"name":"fix"}}}`)
		for i := range calls {
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"sandbox-list","arguments":{"%s":1}}}`+"\n", i, filler)
		}
		if err := w.Flush(); err != nil {
			t.Error(err)
		}
	})
	// The end of input also cancels calls that still wait; nothing is answered twice.
	seen := map[string]bool{}
	refused := 0
	for line := range strings.Lines(out) {
		var answer struct {
			ID    json.RawMessage
			Error *struct{ Code int }
		}
		if err := json.Unmarshal([]byte(line), &answer); err != nil {
			t.Fatal(err)
		}
		if seen[string(answer.ID)] {
			t.Errorf("answered twice: %s", answer.ID)
		}
		seen[string(answer.ID)] = true
		if answer.Error != nil && answer.Error.Code == -32000 {
			refused++
		}
	}
	if !seen[`"hello"`] || refused == 0 {
		t.Errorf("%d answers, %d refused", len(seen), refused)
	}
	if got := h.Litterbox("audit", "verify"); got.Code != 0 {
		t.Errorf("%+v", got)
	}
}
