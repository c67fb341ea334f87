package mcp_test

import (
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/litterbox-sandbox/litterbox/test/program"
)

// Tools that only read do not wait for a running command.
func TestReadsPassACommand(t *testing.T) {
	t.Parallel()
	h := built.New(t)
	c := connect(t, h, sessions)
	c.must("sandbox-create", args{"name": "fix"})
	over := make(chan answer, 1)
	go func() {
		over <- c.call("sandbox-exec", args{"command": "echo yes >begun; mv begun started; until [ -e stop ]; do sleep 0.05; done", "message": "Wait"})
	}()
	for !strings.Contains(c.must("sandbox-files", args{}).text, "started") {
	}
	if got := c.must("sandbox-read", args{"path": "started"}).text; got != "yes\n" {
		t.Errorf("%q", got)
	}
	select {
	case early := <-over:
		t.Errorf("the command has ended before it was told to: %s", early.text)
	default:
	}
	h.Must("exec", "fix", "--", "touch", "stop")
	if got := <-over; got.num("exit_code") != 0 || got.is("running") {
		t.Errorf("%s", got.text)
	}
}

// The first refusal of a command that goes on is reported at once, with the
// rule that lets the whole install through.
func TestRefusalEndsTheWait(t *testing.T) {
	t.Parallel()
	h := built.New(t)
	h.Put(h.Home+"/.npmrc", "registry=https://registry.example.com/\n")
	c := connect(t, h, newest)
	c.must("sandbox-create", args{"name": "fix"})
	got := c.must("sandbox-exec", args{
		"command": `getent ahosts registry.example.com; until [ -e stop ]; do sleep 0.05; done`, "message": "Install",
	})
	if !got.is("running") || !strings.Contains(got.text, "denied: registry.example.com") || !strings.Contains(got.text, "(or preset:npm, for all of its hosts)") {
		t.Errorf("%s", got.text)
	}
	if got := c.must("sandbox-wait", args{"command": got.num("command"), "stop": true}); got.is("running") {
		t.Errorf("%s", got.text)
	}
}

// Nothing waits for a human who is not there, and a pipe does not hide that its
// first program failed.
func TestUnattended(t *testing.T) {
	t.Parallel()
	h := built.New(t)
	c := connect(t, h, newest)
	c.must("sandbox-create", args{"name": "fix"})
	for script, want := range map[string]int{
		"false | cat": 1,
		"git commit --allow-empty -m one -q && git commit --amend --allow-empty -q && git -p log --oneline >/dev/null": 0,
		"cat; read line":             1, // nothing is typed
		"yes | head -n 1 >/dev/null": 141,
	} {
		got := c.must("sandbox-exec", args{"command": script, "message": "Try", "timeout": 60})
		if got.num("exit_code") != want || got.is("timed_out") {
			t.Errorf("%s: %s", script, got.text)
		}
		if want == 141 && !strings.Contains(got.text, "usually no failure") {
			t.Errorf("%s", got.text)
		}
	}
	// Vim says that it has no terminal, and waits for one.
	vim := c.must("sandbox-exec", args{"command": "echo 'Vim: Warning: Input is not from a terminal' >&2; exec sleep 1000", "message": "Edit", "timeout": 100})
	if vim.num("exit_code") == 0 || vim.is("timed_out") || !strings.Contains(vim.text, "an editor waited for a terminal") || !strings.Contains(vim.text, "sandbox-edit") {
		t.Errorf("%s", vim.text)
	}
	c.must("sandbox-write", args{"path": "~/y.txt", "content": "x", "message": "In HOME"})
	if got := c.do(`ls -d '~' 2>/dev/null; cat ~/y.txt`); got != "x" {
		t.Errorf("~ is not the sandbox's home: %q", got)
	}
}

// An answer is text unless a program asked for more, and short.
func TestAnswersAreShortText(t *testing.T) {
	t.Parallel()
	h := built.New(t)
	session := attachPlain(t, h)
	tools, err := session.ListTools(deadline(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range tools.Tools {
		if tool.OutputSchema != nil {
			t.Errorf("%s has an output schema", tool.Name)
		}
	}
	for _, call := range []struct {
		tool string
		args args
		most int // bytes
	}{
		{"sandbox-create", args{"name": "fix"}, 300},
		{"sandbox-exec", args{"command": "echo hi", "message": "Greet"}, 10},
		{"sandbox-write", args{"path": "a", "content": "x", "message": "Write"}, 40},
		{"sandbox-read", args{"path": "a"}, 1},
	} {
		result, err := session.CallTool(deadline(t), &sdk.CallToolParams{Name: call.tool, Arguments: call.args})
		if err != nil || result.IsError {
			t.Fatalf("%s: %v %+v", call.tool, err, result)
		}
		text := result.Content[0].(*sdk.TextContent).Text
		if result.StructuredContent != nil || len(result.Content) != 1 || len(text) > call.most {
			t.Errorf("%s: %d bytes: %q %v", call.tool, len(text), text, result.StructuredContent)
		}
	}
}

// Answers that are read again and again are short as sent, envelope included.
func TestWireIsShort(t *testing.T) {
	t.Parallel()
	h := built.New(t)
	c := count(t, command(h, "mcp"))
	c.begin()
	for _, call := range []struct {
		method string
		params args
		most   int // bytes of the answer's line
	}{
		{"tools/list", args{}, 9_000},
		{"tools/call", args{"name": "sandbox-create", "arguments": args{"name": "fix"}}, 300},
		{"tools/call", args{"name": "sandbox-exec", "arguments": args{"command": "echo hi", "message": "Greet"}}, 120},
	} {
		began := c.read
		c.ask(call.method, call.params)
		if took := c.read - began; took > call.most {
			t.Errorf("%s %v: the answer has %d bytes, more than %d", call.method, call.params, took, call.most)
		}
	}
}

// attachPlain connects a client as agents have it: no structured content.
func attachPlain(t *testing.T, h *program.Host) *sdk.ClientSession {
	t.Helper()
	session, err := sdk.NewClient(&sdk.Implementation{Name: "test-agent"}, nil).Connect(deadline(t), &sdk.CommandTransport{Command: command(h, "mcp")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session
}

// A command goes on in its sandbox while the session turns to another one.
func TestSwitchingLeavesCommandsRunning(t *testing.T) {
	t.Parallel()
	h := built.New(t)
	c := connect(t, h, newest, "--answer-within", "500ms")
	c.must("sandbox-create", args{"name": "one"})
	waits := c.must("sandbox-exec", args{"command": "until [ -e stop ]; do sleep 0.05; done; echo over", "message": "Wait"})
	if !waits.is("running") {
		t.Fatalf("%s", waits.text)
	}
	c.must("sandbox-create", args{"name": "two"})
	c.must("sandbox-write", args{"path": "stop", "content": "", "message": "In two"})
	c.must("sandbox-write", args{"path": "stop", "content": "", "message": "In one", "sandbox": "one"})
	var text string
	for waits.is("running") {
		waits = c.must("sandbox-wait", args{"command": waits.num("command")})
		text += waits.text
	}
	if !strings.Contains(text, "exit 0") || !strings.Contains(text, "over") {
		t.Errorf("%s", text)
	}
	// A sandbox that the session has left is free for others, and is its own
	// again when free.
	c.must("sandbox-open", args{"name": "two"})
	other := connect(t, h, newest)
	other.fails("conflict", "sandbox-open", args{"name": "two"}, "in use by")
	other.must("sandbox-open", args{"name": "one"})
	c.fails("conflict", "sandbox-read", args{"path": "README", "sandbox": "one"}, "in use by")
	other.must("sandbox-create", args{"name": "three"})
	c.must("sandbox-read", args{"path": "README", "sandbox": "one"})
}

// A search finds what lies far into a line, names what it skipped, and shows
// lines around a match; its paths are what the next call takes.
func TestSearchIsWhole(t *testing.T) {
	t.Parallel()
	h := built.New(t)
	c := connect(t, h, newest)
	c.must("sandbox-create", args{"name": "fix"})
	c.do(`mkdir -p sub/deep; printf 'one\ntwo\nthree\nfour\nfive\ntwo\n' >sub/deep/words
		{ head -c 300000 /dev/zero | tr '\0' x; printf 'needle\nafter\n'; } >sub/long
		{ head -c 9000000 /dev/zero | tr '\0' x; printf 'needle\n'; } >huge`)
	for _, search := range []struct {
		args args
		want string
	}{
		{args{"pattern": "^two$", "path": "sub/deep", "context": 1}, "sub/deep/words-1- one\nsub/deep/words:2: two\nsub/deep/words-3- three\n--\nsub/deep/words-5- five\nsub/deep/words:6: two\n"},
		{args{"pattern": "four", "path": "sub/deep/words"}, "sub/deep/words:4: four\n"},
		{args{"pattern": "after", "path": "sub"}, "sub/long:2: after\n"},
	} {
		if got := c.must("sandbox-search", search.args); got.text != search.want {
			t.Errorf("%v: %q, want %q", search.args, got.text, search.want)
		}
	}
	if got := c.must("sandbox-search", args{"pattern": "needle"}); !strings.Contains(got.text, "sub/long:1: …xxx") || !strings.Contains(got.text, "skipped") {
		t.Errorf("%s", got.text)
	}
	if got := c.must("sandbox-files", args{"path": "sub", "glob": "words"}); got.text != "sub/deep/words\n" {
		t.Errorf("%q", got.text)
	}
}
