package mcp_test

import (
	"bufio"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/litterbox-sandbox/litterbox/test/program"
)

// However the client goes, its command is ended and its work committed, the
// sandbox stays, and another agent can take it up at once.
func TestClientGoes(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(t *testing.T, c *client){
		"closes its end": func(_ *testing.T, c *client) { _ = c.stdin.Close() },
		"TERM":           func(_ *testing.T, c *client) { _ = c.server.Process.Signal(syscall.SIGTERM) },
		"INT":            func(_ *testing.T, c *client) { _ = c.server.Process.Signal(syscall.SIGINT) },
		"HUP":            func(_ *testing.T, c *client) { _ = c.server.Process.Signal(syscall.SIGHUP) },
		"KILL":           func(_ *testing.T, c *client) { _ = c.server.Process.Kill() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := built.New(t)
			c := connect(t, h, newest)
			c.must("sandbox-create", args{"name": "fix"})
			go func() {
				_, _ = c.raw(deadline(t), "sandbox-exec", args{"command": "echo begun >begun; sleep 304; echo late >late", "message": "Vanish"})
			}()
			await(t, "the command begins", func() bool { return h.Inside("fix", "test", "-e", "begun").Code == 0 })
			leave(t, c)
			if name != "KILL" {
				await(t, "the commit", func() bool { return h.Git("log", "-1", "--format=%s", "fix") == "Vanish" })
			}
			other := connect(t, h, newest)
			var opened answer
			await(t, "the sandbox is free", func() bool {
				opened = other.call("sandbox-open", args{"name": "fix"})
				return opened.kind == ""
			})
			if name == "KILL" && !strings.Contains(opened.text, "its process has ended") {
				t.Errorf("%s", opened.text)
			}
			other.do("echo on >on")
			if files := h.Git("log", "--format=", "--name-only", "main..fix"); !strings.Contains(files, "begun") || strings.Contains(files, "late") {
				t.Errorf("committed: %q", files)
			}
			left := func() string { return other.do("ps -eo args | grep -c '[s]leep 304' || true") }
			if name == "KILL" { // no process is left to wait for the end
				await(t, "what ran is ended", func() bool { return left() == "0" })
			}
			if left := left(); left != "0" {
				t.Errorf("%s processes of it are left", left)
			}
			if got := h.Litterbox("audit", "verify"); got.Code != 0 {
				t.Errorf("%+v", got)
			}
		})
	}
}

// Two agents, one sandbox.
func TestOneAgentEach(t *testing.T) {
	t.Parallel()
	h := built.New(t)
	_, url, token := web(t, h)
	first, second := connect(t, h, newest), dial(t, h, over(url, token), sessions)
	third := dial(t, h, over(url, token), newest)
	first.must("sandbox-create", args{"name": "fix"})
	for _, other := range []*client{second, third} {
		other.fails("conflict", "sandbox-open", args{"name": "fix"}, "in use by test-agent 1.2.3", "sandbox of your own")
		if list := other.must("sandbox-list", args{}); !strings.Contains(list.text, "test-agent 1.2.3 works there") {
			t.Errorf("%s", list.text)
		}
	}
	first.must("sandbox-open", args{"name": "fix"}) // its own, again
	first.must("sandbox-create", args{"name": "next"})
	second.must("sandbox-open", args{"name": "fix"})
	third.fails("conflict", "sandbox-open", args{"name": "fix"})
	first.fails("conflict", "sandbox-open", args{"name": "fix"})
	_ = second.session.Close() // a DELETE of its session
	await(t, "it is free", func() bool { return third.call("sandbox-open", args{"name": "fix"}).kind == "" })

	// The wall clock may jump as it likes.
	record := h.State + "/litterbox/sandboxes/next-*/agent.json"
	if got := h.Shell(`sed -i 's/"\(expires_at\|heartbeat\)": "20/"\1": "19/; s/"checksum": .*/"checksum": ""/' ` + record); got.Code != 0 {
		t.Fatalf("%+v", got)
	}
	taker := connect(t, h, newest)
	taker.fails("conflict", "sandbox-open", args{"name": "next"}, "in use by test-agent")

	// A holder that gives no sign of life is replaced, and learns of it. It
	// lives, and may give one at this very moment.
	var taken answer
	await(t, "it is taken over", func() bool {
		if got := h.Shell(`sed -i 's/"awake_ns": [0-9]*/"awake_ns": 9000000000000000000/; s/"checksum": .*/"checksum": ""/' ` + record); got.Code != 0 {
			t.Fatalf("%+v", got)
		}
		taken = taker.call("sandbox-open", args{"name": "next"})
		return taken.kind == ""
	})
	if !strings.Contains(taken.text, "no sign of life") {
		t.Errorf("%s", taken.text)
	}
	first.fails("conflict", "sandbox-exec", args{"command": "true", "message": "Go on"}, "taken over by test-agent")
	first.fails("conflict", "sandbox-read", args{"path": "README"}, "works on no sandbox")
	taker.do("true")

	// Many at once: one gets it.
	h.Must("create", "prize")
	results := make(chan answer, 6)
	for range 6 {
		c := dial(t, h, over(url, token), sessions)
		go func() { results <- c.call("sandbox-open", args{"name": "prize"}) }()
	}
	won := 0
	for range 6 {
		if (<-results).kind == "" {
			won++
		}
	}
	if won != 1 {
		t.Errorf("%d agents got the same sandbox", won)
	}
}

// Calls of one session come one after the other, as they were sent, however
// fast they are sent.
func TestOrder(t *testing.T) {
	t.Parallel()
	h := built.New(t)
	cmd := command(h, "mcp", "--structured")
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
	var sent strings.Builder
	say := func(line string) { sent.WriteString(line + "\n") }
	say(`{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`)
	say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	say(`{"jsonrpc":"2.0","id":0,"method":"tools/call","params":{"name":"sandbox-create","arguments":{"name":"fix"}}}`)
	const calls = 40
	for i := 1; i <= calls; i++ {
		n := strconv.Itoa(i)
		say(`{"jsonrpc":"2.0","id":` + n + `,"method":"tools/call","params":{"name":"sandbox-exec","arguments":{"command":"echo ` + n + ` >>order","message":"Step ` + n + `"}}}`)
		if i == 20 { // canceled before its turn: neither run nor answered
			say(`{"jsonrpc":"2.0","id":"gone","method":"tools/call","params":{"name":"sandbox-exec","arguments":{"command":"echo gone >>order","message":"Gone"}}}`)
			say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"gone"}}`)
		}
		if i%10 == 0 {
			say(`{"jsonrpc":"2.0","id":"ping` + n + `","method":"ping"}`)
		}
	}
	if _, err := io.WriteString(in, sent.String()); err != nil {
		t.Fatal(err)
	}
	reader := bufio.NewReader(out)
	next, pings := 0, 0
	for next <= calls {
		line, err := reader.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case strings.Contains(line, `"id":"ping`):
			pings++
		case strings.Contains(line, `"id":"gone"`):
			t.Errorf("a canceled call was answered: %s", line)
		case strings.Contains(line, `"id":`+strconv.Itoa(next)+`,`):
			next++
		case !strings.Contains(line, `"id":"i"`):
			t.Fatalf("out of order, %d was next: %s", next, line)
		}
	}
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	var want strings.Builder
	for i := 1; i <= calls; i++ {
		want.WriteString(strconv.Itoa(i) + "\n")
	}
	if got := h.Git("show", "fix:order"); got+"\n" != want.String() || pings != 4 {
		t.Errorf("%d pings, %q", pings, got)
	}
}

// Eight agents at once on one repository, each in a sandbox of its own, half of
// them over one HTTP server.
func TestEightAgents(t *testing.T) {
	t.Parallel()
	h := built.New(t)
	eightAgents(t, h, func(args ...string) *exec.Cmd { return command(h, args...) })
}

func eightAgents(t *testing.T, h *program.Host, litterbox func(args ...string) *exec.Cmd) {
	url, token := listen(t, litterbox("mcp", "--structured", "--http", "127.0.0.1:0"))
	clients := make([]*client, 8)
	for i := range clients {
		switch i % 4 {
		case 0, 1:
			clients[i] = attach(t, h, litterbox("mcp", "--structured"), []string{newest, sessions}[i%2])
		case 2:
			clients[i] = dial(t, h, over(url, token), sessions)
		case 3:
			clients[i] = dial(t, h, over(url, token), newest)
		}
	}
	var all sync.WaitGroup
	for i, c := range clients {
		all.Go(func() {
			mine := fmt.Sprintf("agent %d", i)
			c.must("sandbox-create", args{"name": mine})
			for n := range 6 {
				c.must("sandbox-exec", args{"command": fmt.Sprintf("echo %s >>mine; pwd", mine), "message": fmt.Sprintf("Step %d", n)})
				c.must("sandbox-write", args{"path": fmt.Sprintf("file%d", n), "content": mine, "message": "Write"})
				if got := c.must("sandbox-read", args{"path": fmt.Sprintf("file%d", n)}); got.str("content") != mine {
					t.Errorf("%s reads %q", mine, got.str("content"))
				}
			}
			c.must("sandbox-milestone", args{"message": mine})
		})
	}
	all.Wait()
	for i := range clients {
		branch := fmt.Sprintf("agent-%d", i)
		want := strings.Repeat(fmt.Sprintf("agent %d\n", i), 6)
		if got := h.Git("show", branch+":mine") + "\n"; got != want {
			t.Errorf("%s: %q", branch, got)
		}
		if got := h.Git("log", "--format=%s", "main.."+branch); got != fmt.Sprintf("agent %d", i) {
			t.Errorf("%s: %q", branch, got)
		}
	}
	if got := h.Litterbox("audit", "verify"); got.Code != 0 {
		t.Errorf("%+v", got)
	}
}
