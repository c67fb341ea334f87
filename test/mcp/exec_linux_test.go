package mcp_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/test/program"
)

// await waits until something that happens meanwhile holds.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it never happened: %s", what)
		}
	}
}

func TestLongOutput(t *testing.T) {
	t.Parallel()
	h := built.New(t)
	c := connect(t, h, newest)
	c.must("sandbox-create", args{"name": "fix"})
	long := c.must("sandbox-exec", args{"command": `seq 1 100000; seq 200001 200010 >&2`, "message": "Count"})
	if len(long.text) > 10_000 || !strings.Contains(long.str("stdout"), "1\n2\n3\n") || !strings.HasSuffix(long.str("stdout"), "99999\n100000\n") ||
		!strings.Contains(long.str("stdout"), "of 588895 bytes left out") || long.num("stdout_bytes") != 588895 || !strings.HasSuffix(long.str("stderr"), "200010\n") {
		t.Errorf("%.300s … %d bytes", long.text, len(long.text))
	}
	whole := long.str("whole_output")
	if got := c.do("wc -c <" + whole + "; tail -n 1 " + whole); got != "588965\n200010" && got != "588965\n100000" {
		t.Errorf("the whole in %q: %q", whole, got)
	}
	if page := c.must("sandbox-read", args{"path": whole, "line": 50000, "limit": 20}); !strings.HasPrefix(page.str("content"), "50000\n50001\n") {
		t.Errorf("%+v", page)
	}
	short := c.must("sandbox-exec", args{"command": "seq 1 100", "message": "Count"})
	if short.str("whole_output") != "" || short.num("stdout_bytes") != 292 || strings.Contains(short.text, "left out") {
		t.Errorf("%s", short.text)
	}
	more := c.must("sandbox-exec", args{"command": "seq 1 10000", "message": "Count", "limit": 100_000})
	if more.str("whole_output") != "" || len(more.str("stdout")) != 48894 {
		t.Errorf("asked for: %d bytes", len(more.str("stdout")))
	}
	// More than is kept, and what a terminal would obey.
	flood := c.must("sandbox-exec", args{"command": `head -c 60000000 /dev/zero | tr '\0' 'x'; printf '\033[31mred\033[0m \033]0;title\007 a\rb\r\nc \233 \302\233 \342\200\256'`, "message": "Flood"})
	if !strings.HasSuffix(flood.str("stdout"), "b\nc \ufffd \ufffd \ufffd") || !strings.Contains(flood.text, "its first 33554432 bytes") {
		t.Errorf("%.200q … %q", flood.text, flood.text[len(flood.text)-300:])
	}
	// Only the newest are kept.
	for range 20 {
		c.do("seq 1 3000")
	}
	if got := c.do("ls /tmp/litterbox | wc -l"); got != "16" {
		t.Errorf("%s outputs are kept", got)
	}
}

func TestTimeout(t *testing.T) {
	t.Parallel()
	h := built.New(t)
	c := connect(t, h, newest)
	c.must("sandbox-create", args{"name": "fix"})
	late := c.must("sandbox-exec", args{"command": "echo begun >begun; (trap '' TERM; sleep 300) & sleep 300; echo late >late", "message": "Wait", "timeout": 15})
	if late.num("exit_code") != 124 || !late.is("timed_out") || strings.Join(late.strs("files"), "") != "begun" || !strings.Contains(late.text, "timeout") {
		t.Errorf("%+v", late.data)
	}
	if left := c.do("ps -eo args | grep -c '[s]leep 300' || true"); left != "0" {
		t.Errorf("%s processes of it are left", left)
	}
}

// A canceled call ends the whole process group, and its work is committed.
func TestCancel(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, h *program.Host, c *client) {
		c.must("sandbox-create", args{"name": "fix"})
		ctx, cancel := context.WithCancel(deadline(t))
		ended := make(chan error, 1)
		go func() {
			_, err := c.raw(ctx, "sandbox-exec", args{"command": "echo begun >begun; sleep 301 & sleep 301; echo late >late", "message": "Wait"})
			ended <- err
		}()
		await(t, "the command begins", func() bool { return h.Inside("fix", "test", "-e", "begun").Code == 0 })
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the call: %v", err)
		}
		await(t, "its commit", func() bool {
			return strings.Contains(h.Git("log", "--format=%s", "fix"), "Wait")
		})
		if files := h.Git("show", "--format=", "--name-only", "fix"); files != "begun" {
			t.Errorf("committed: %q", files)
		}
		if left := c.do("ps -eo args | grep -c '[s]leep 301' || true"); left != "0" {
			t.Errorf("%s processes of it are left", left)
		}
	})
}

// A command that takes longer than a client waits goes on.
func TestAnswerWithin(t *testing.T) {
	t.Parallel()
	h := built.New(t)
	c := connect(t, h, newest, "--answer-within", "300ms")
	c.must("sandbox-create", args{"name": "fix"})
	first := c.must("sandbox-exec", args{"command": "echo one; until test -e /tmp/go; do sleep 0.02; done; echo two; exit 5", "message": "Long"})
	number := first.num("command")
	if !first.is("running") || number == 0 || first.num("exit_code") != -1 || !strings.Contains(first.text, "sandbox-wait") {
		t.Fatalf("%+v", first.data)
	}
	// On a busy machine a command may not have begun after so short a time.
	printed := first.str("stdout")
	await(t, "its first line", func() bool {
		if printed == "" {
			printed = c.must("sandbox-wait", args{"command": number}).str("stdout")
		}
		return printed != ""
	})
	if printed != "one\n" {
		t.Fatalf("%q", printed)
	}
	// Meanwhile the session can look.
	c.must("sandbox-read", args{"path": "README"})
	if again := c.must("sandbox-wait", args{"command": number}); !again.is("running") || again.str("stdout") != "" {
		t.Errorf("%+v", again.data)
	}
	if got := h.Inside("fix", "touch", "/tmp/go"); got.Code != 0 {
		t.Fatalf("%+v", got)
	}
	var last answer
	rest := ""
	await(t, "the end", func() bool {
		last = c.must("sandbox-wait", args{"command": number})
		rest += last.str("stdout")
		return !last.is("running")
	})
	if last.num("exit_code") != 5 || rest != "two\n" || last.str("commit") != h.Git("rev-parse", "fix") {
		t.Errorf("%+v", last.data)
	}
	c.fails("not_found", "sandbox-wait", args{"command": number}, "sandbox-log")

	// Stopping one.
	second := c.must("sandbox-exec", args{"command": "echo x >stopped; sleep 302", "message": "Stop me"})
	await(t, "the second began", func() bool { return h.Inside("fix", "test", "-e", "stopped").Code == 0 })
	stopped := c.must("sandbox-wait", args{"command": second.num("command"), "stop": true})
	for stopped.is("running") {
		stopped = c.must("sandbox-wait", args{"command": second.num("command")})
	}
	if stopped.num("exit_code") != 143 || stopped.str("signal") != "TERM" || strings.Join(stopped.strs("files"), "") != "stopped" {
		t.Errorf("%+v", stopped.data)
	}
	// As many as there may be.
	for range 8 {
		c.must("sandbox-exec", args{"command": "sleep 303", "message": "Many"})
	}
	c.fails("conflict", "sandbox-exec", args{"command": "true", "message": "One more"}, "sandbox-wait")
}

func TestProgress(t *testing.T) {
	t.Parallel()
	h := built.New(t)
	c := connect(t, h, newest)
	c.must("sandbox-create", args{"name": "fix"})
	answered := make(chan answer, 1)
	go func() {
		answered <- c.call("sandbox-exec", args{"command": `printf '\033[32mcompiling a\n'; until test -e /tmp/go; do sleep 0.02; done`, "message": "Build"})
	}()
	for patience, message := time.After(time.Minute), ""; message == ""; { // empty before it has printed
		select {
		case p := <-c.progress:
			if message = p.Message; message != "compiling a" && message != "" || p.Progress <= 0 || p.ProgressToken != any("sandbox-exec") {
				t.Errorf("%+v", p)
			}
		case <-patience:
			message = "none"
			t.Error("no progress")
		}
	}
	if got := h.Inside("fix", "touch", "/tmp/go"); got.Code != 0 {
		t.Fatalf("%+v", got)
	}
	if a := <-answered; a.num("exit_code") != 0 {
		t.Errorf("%+v", a)
	}
}

func TestBackground(t *testing.T) {
	t.Parallel()
	h := built.New(t)
	c := connect(t, h, newest)
	c.must("sandbox-create", args{"name": "fix"})
	left := c.must("sandbox-exec", args{"command": "(until test -e /tmp/go; do sleep 0.02; done; echo later) & echo now", "message": "Leave it"})
	if len(left.strs("background")) == 0 || left.str("stdout") != "now\n" || !strings.Contains(left.text, "left running: process") {
		t.Fatalf("%+v", left.data)
	}
	c.do("touch /tmp/go")
	await(t, "its further output", func() bool {
		return c.call("sandbox-read", args{"path": left.str("background_output")}).str("content") == "later\n"
	})
}

func TestNetworkRefusals(t *testing.T) {
	t.Parallel()
	h := built.New(t)
	c := connect(t, h, newest)
	c.must("sandbox-create", args{"name": "fix"})
	const script = `import socket
try: socket.getaddrinfo("forbidden.example.com", 443)
except OSError as e: print("name:", e)
try: socket.create_connection(("192.0.2.7", 8443), 5).recv(1)
except OSError as e: print("address:", e)`
	if h.Shell("python3 --version").Code != 0 {
		if strings.Contains(os.Getenv("LITTERBOX_TEST_REQUIRE"), "python3") {
			t.Fatal("LITTERBOX_TEST_REQUIRE demands python3")
		}
		t.Skip("no python3")
	}
	c.must("sandbox-write", args{"path": "try.py", "content": script, "message": "A script"})
	denied := c.must("sandbox-exec", args{"command": "python3 try.py", "message": "Go out"})
	for _, want := range []string{
		"denied: forbidden.example.com (", "a human allows it with: litterbox allow fix forbidden.example.com",
		"denied: 192.0.2.7:8443 (", "litterbox allow fix 192.0.2.7:8443",
	} {
		if !strings.Contains(denied.text, want) {
			t.Errorf("no %q in %s", want, denied.text)
		}
	}
	if len(denied.strs("denied")) != 2 {
		t.Errorf("%+v", denied.data)
	}
	// Told once, with the call in which it was tried.
	if after := c.must("sandbox-exec", args{"command": "true", "message": "Stay"}); len(after.strs("denied")) != 0 {
		t.Errorf("%+v", after.data)
	}
}

// The environment of the server, which holds everything of its client, stays
// outside.
func TestServerEnvironmentStaysOutside(t *testing.T) {
	t.Parallel()
	h := built.New(t).With("ANTHROPIC_API_KEY=very-secret-value", "SOME_VARIABLE=also-not")
	c := connect(t, h, newest)
	c.must("sandbox-create", args{"name": "fix"})
	if got := c.do("env; cat /proc/1/environ 2>/dev/null || true"); strings.Contains(got, "very-secret-value") || strings.Contains(got, "also-not") {
		t.Errorf("%s", got)
	}
	// Its secrets do not get into the log either, if one is typed.
	c.do("echo very-secret-value >/dev/null")
	if log := h.Must("audit", "--json"); strings.Contains(log, "very-secret-value") || !strings.Contains(log, "echo [redacted]") {
		t.Error("a secret of the server is in the audit log")
	}
	if _, err := os.Stat(h.State); err != nil {
		t.Error(err)
	}
}
