package mcp_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/test/program"
)

// step16 is one of the sixteen steps of the three tasks, as each side does it.
// A step that is empty for one side costs it nothing.
type step16 struct {
	task   string
	ours   step
	theirs []step // tools of the filesystem server; "shell" is a client's own
}

// sixteen are a feature with its test, the search for a bug in a server, and a
// rename across files. The filesystem server runs nothing, so its side has a
// shell beside it, as clients do, and commits by that; ours commits by itself.
func sixteen() []step16 {
	const why = "Do the next step of the task"
	run := func(command string) step { return step{"sandbox-exec", args{"command": command, "message": why}} }
	sh := func(command string) step { return step{"shell", args{"command": command}} }
	const test = "def test_double():\n    assert double(2) == 4\n"
	const feature, debug, rename = "feature with a test", "debugging a server", "rename across files"
	edit := func(path, old, text string) (step, step) {
		return step{"sandbox-edit", args{"path": path, "old": old, "new": text, "message": why}},
			step{"edit_file", args{"path": path, "edits": []args{{"oldText": old, "newText": text}}}}
	}
	add, addBeside := edit("calc.py", "def one():", "def double(n):\n    return 2 * n\n\n\ndef one():")
	mend, mendBeside := edit("server.py", "port = 80", "port = 8080")
	return []step16{
		{feature, step{"sandbox-create", args{"name": "tasks"}}, []step{sh("git switch -qc tasks")}},
		{feature, step{"sandbox-read", args{"path": "calc.py"}}, []step{{"read_text_file", args{"path": "calc.py"}}}},
		{feature, add, []step{addBeside}},
		{feature, step{"sandbox-write", args{"path": "check.py", "content": "from calc import double\n\n\n" + test + "\n\ntest_double()\n", "message": why}},
			[]step{{"write_file", args{"path": "check.py", "content": "from calc import double\n\n\n" + test + "\n\ntest_double()\n"}}}},
		{feature, run("python3 check.py"), []step{sh("python3 check.py")}},
		{feature, step{"sandbox-milestone", args{"message": "Double numbers"}}, []step{sh("git add -A && git commit -qm 'Double numbers'")}},
		{debug, step{"sandbox-files", args{"glob": "*.py"}}, []step{{"search_files", args{"path": ".", "pattern": "*.py"}}}},
		{debug, run("python3 server.py --check"), []step{sh("python3 server.py --check")}},
		{debug, step{"sandbox-search", args{"pattern": "port"}}, []step{sh("grep -rn port --include=*.py .")}},
		{debug, mend, []step{mendBeside}},
		{debug, run("python3 server.py --check"), []step{sh("python3 server.py --check")}},
		{rename, step{"sandbox-search", args{"pattern": `\bone\b`}}, []step{sh(`grep -rnw one --include=*.py .`)}},
		{rename, run(`sed -i 's/\bone\b/uno/g' *.py`), []step{sh(`sed -i 's/\bone\b/uno/g' *.py`)}},
		{rename, run("python3 user0.py && python3 check.py"), []step{sh("python3 user0.py && python3 check.py")}},
		{rename, step{"sandbox-diff", args{"since": "milestone"}}, []step{sh("git diff")}},
		{rename, step{"sandbox-milestone", args{"message": "Listen on a free port, and say uno"}}, []step{sh("git add -A && git commit -qm 'Listen on a free port, and say uno'")}},
	}
}

// cost is what a task took.
type cost struct {
	calls, bytes int
	took         time.Duration
}

func (c *cost) add(bytes int, took time.Duration) {
	c.calls++
	c.bytes += bytes
	c.took += took
}

// counted is a server on standard input and output, whose bytes both ways are
// counted.
type counted struct {
	t   *testing.T
	in  io.Writer
	out *bufio.Reader
	id  int
}

func count(t *testing.T, cmd *exec.Cmd) *counted {
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
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	return &counted{t: t, in: in, out: bufio.NewReaderSize(out, 1<<20)}
}

// ask sends a request and gives the answer and the bytes of both.
func (c *counted) ask(method string, params any) (json.RawMessage, int) {
	c.t.Helper()
	c.id++
	request, err := json.Marshal(args{"jsonrpc": "2.0", "id": c.id, "method": method, "params": params})
	if err != nil {
		c.t.Fatal(err)
	}
	if _, err := c.in.Write(append(request, '\n')); err != nil {
		c.t.Fatal(err)
	}
	for {
		line, err := c.out.ReadBytes('\n')
		if err != nil {
			c.t.Fatalf("%s: %v", method, err)
		}
		var answer struct {
			ID     int
			Result json.RawMessage
			Error  json.RawMessage
		}
		if json.Unmarshal(line, &answer) == nil && answer.ID == c.id {
			if answer.Error != nil {
				c.t.Fatalf("%s: %s", method, answer.Error)
			}
			return answer.Result, len(request) + len(line)
		}
	}
}

// begin shakes hands and gives the bytes of the list of tools.
func (c *counted) begin() int {
	c.ask("initialize", args{"protocolVersion": sessions, "capabilities": args{}, "clientInfo": args{"name": "test", "version": "1"}})
	if _, err := io.WriteString(c.in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n"); err != nil {
		c.t.Fatal(err)
	}
	_, size := c.ask("tools/list", args{})
	return size
}

// do calls a tool, which has to succeed.
func (c *counted) do(s step) int {
	c.t.Helper()
	result, size := c.ask("tools/call", args{"name": s.tool, "arguments": s.args})
	var answer struct{ IsError bool }
	if err := json.Unmarshal(result, &answer); err != nil || answer.IsError {
		c.t.Fatalf("%s %v: %s", s.tool, s.args, result)
	}
	return size
}

// project is what both sides work on.
func project(h *program.Host) {
	h.Put(filepath.Join(h.Repo, "calc.py"), "def one():\n    return 1\n")
	h.Put(filepath.Join(h.Repo, "server.py"), "import sys\n\nport = 80\nif port < 1024:\n    sys.exit('cannot listen on port %d: not allowed' % port)\nprint('listens on', port)\n")
	for i := range 16 {
		h.Put(filepath.Join(h.Repo, fmt.Sprintf("user%d.py", i)), "from calc import one\n\nprint(one())\n")
	}
	h.Put(filepath.Join(h.Repo, ".gitignore"), "__pycache__/\n")
	h.Git("add", ".")
	h.Git("commit", "-qm", "A project")
}

// The three tasks by litterbox's tools, and by the reference filesystem server
// with a shell beside it: calls, bytes on the wire and seconds. It writes the
// page where LITTERBOX_TEST_BESIDE names the directory with that server; see
// make test-beside.
func TestTasksBesideAnotherServer(t *testing.T) {
	dir := os.Getenv("LITTERBOX_TEST_BESIDE")
	if dir == "" {
		t.Skip("LITTERBOX_TEST_BESIDE names no directory with the other server; see make test-beside")
	}
	h, beside := built.New(t), built.New(t)
	project(h)
	project(beside)
	ours := count(t, command(h, "mcp"))
	theirs := exec.Command(filepath.Join(dir, "node_modules", ".bin", "mcp-server-filesystem"), beside.Repo)
	theirs.Dir, theirs.Stderr = beside.Repo, io.Discard
	other := count(t, theirs)
	lists := [2]int{ours.begin(), other.begin()}

	var tasks []string
	costs := map[string]*[2]cost{}
	for _, s := range sixteen() {
		if costs[s.task] == nil {
			costs[s.task] = &[2]cost{}
			tasks = append(tasks, s.task)
		}
		began := time.Now()
		if s.task == "debugging a server" && s.ours.tool == "sandbox-exec" && costs[s.task][0].calls == 1 {
			// It is to fail: that is what is looked for.
			_, size := ours.ask("tools/call", args{"name": s.ours.tool, "arguments": s.ours.args})
			costs[s.task][0].add(size, time.Since(began))
		} else {
			costs[s.task][0].add(ours.do(s.ours), time.Since(began))
		}
		for _, one := range s.theirs {
			began := time.Now()
			if one.tool != "shell" {
				costs[s.task][1].add(other.do(one), time.Since(began))
				continue
			}
			// A call of a client's own shell, in the same envelope.
			cmd := exec.Command("bash", "-c", one.args["command"].(string))
			cmd.Dir, cmd.Env = beside.Repo, beside.Env
			output, _ := cmd.CombinedOutput() // a failure is in the output, as a model sees it
			envelope, err := json.Marshal([]any{
				args{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": args{"name": "shell", "arguments": one.args}},
				args{"jsonrpc": "2.0", "id": 1, "result": args{"content": []args{{"type": "text", "text": string(output)}}}},
			})
			if err != nil {
				t.Fatal(err)
			}
			costs[s.task][1].add(len(envelope), time.Since(began))
		}
	}
	for _, host := range []*program.Host{h, beside} {
		if got := host.Git("show", "tasks:user7.py"); got != "from calc import uno\n\nprint(uno())" {
			t.Errorf("the rename: %q", got)
		}
	}
	page := besidePage(tasks, costs, lists)
	t.Log("\n" + page)
	if err := os.WriteFile("../../docs/reference/tools-beside.md", []byte(page), 0o644); err != nil {
		t.Fatal(err)
	}
}

func besidePage(tasks []string, costs map[string]*[2]cost, lists [2]int) string {
	var b strings.Builder
	b.WriteString(`# The same tasks by other tools

<!-- Made by: make test-beside -->

Three tasks in sixteen steps, done by the tools of ` + "`litterbox mcp`" + ` and by the reference filesystem server from npm with a shell beside it: the calls, the bytes of requests and answers, and the seconds that the tools took. What a model pays in tokens goes with the bytes. The other side works in the checkout itself, without isolation, and commits by hand; litterbox commits each step.

| task | calls | bytes | seconds | calls beside | bytes beside | seconds beside |
|---|---|---|---|---|---|---|
`)
	var all [2]cost
	for _, task := range tasks {
		c := costs[task]
		for i := range all {
			all[i].calls, all[i].bytes, all[i].took = all[i].calls+c[i].calls, all[i].bytes+c[i].bytes, all[i].took+c[i].took
		}
		fmt.Fprintf(&b, "| %s | %d | %d | %.2f | %d | %d | %.2f |\n", task, c[0].calls, c[0].bytes, c[0].took.Seconds(), c[1].calls, c[1].bytes, c[1].took.Seconds())
	}
	fmt.Fprintf(&b, "| all | %d | %d | %.2f | %d | %d | %.2f |\n", all[0].calls, all[0].bytes, all[0].took.Seconds(), all[1].calls, all[1].bytes, all[1].took.Seconds())
	fmt.Fprintf(&b, "| list of tools, once in a session | 1 | %d | | 1 | %d | |\n", lists[0], lists[1])
	b.WriteString("\nThe list beside is that of the filesystem server alone; a shell's tool comes on top of it. Seconds depend on the machine and on what else it did.\n")
	return b.String()
}
