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
	"github.com/litterbox-sandbox/litterbox/test/tasks"
)

// cost is the cost of a task.
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
	t    *testing.T
	in   io.Writer
	out  *bufio.Reader
	id   int
	read int // bytes of answers so far
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

// ask sends a request and returns the answer and the bytes of both.
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
			c.read += len(line)
			if answer.Error != nil {
				c.t.Fatalf("%s: %s", method, answer.Error)
			}
			return answer.Result, len(request) + len(line)
		}
	}
}

// begin shakes hands and returns the bytes of the list of tools.
func (c *counted) begin() int {
	c.ask("initialize", args{"protocolVersion": sessions, "capabilities": args{}, "clientInfo": args{"name": "test", "version": "1"}})
	if _, err := io.WriteString(c.in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n"); err != nil {
		c.t.Fatal(err)
	}
	_, size := c.ask("tools/list", args{})
	return size
}

// do calls a tool, which must succeed, and returns the bytes of call and answer.
func (c *counted) do(call tasks.Call) int {
	c.t.Helper()
	result, size := c.ask("tools/call", args{"name": call.Tool, "arguments": call.Args})
	var answer struct{ IsError bool }
	if err := json.Unmarshal(result, &answer); err != nil || answer.IsError {
		c.t.Fatalf("%s %v: %s", call.Tool, call.Args, result)
	}
	return size
}

// What does the tasks: these tools, those of an older litterbox, and another
// server with a shell beside it.
const (
	ours = iota
	older
	beside
	sides
)

// The three tasks by litterbox's tools, by those of an older program, and by the
// reference filesystem server with a shell beside it: calls, bytes on the wire
// and seconds. It writes the page where LITTERBOX_TEST_BESIDE names the directory
// with that server and LITTERBOX_TEST_BEFORE the older program; see
// make test-beside.
func TestTasksBesideAnotherServer(t *testing.T) {
	dir, before := os.Getenv("LITTERBOX_TEST_BESIDE"), os.Getenv("LITTERBOX_TEST_BEFORE")
	if dir == "" || before == "" {
		t.Skip("LITTERBOX_TEST_BESIDE names no directory with the other server, or LITTERBOX_TEST_BEFORE no older program; see make test-beside")
	}
	var hosts [sides]*program.Host
	for i := range hosts {
		hosts[i] = built.New(t)
		tasks.Project(hosts[i])
	}
	h, other := hosts[ours], hosts[beside]
	program := count(t, command(h, "mcp"))
	was := command(hosts[older], "mcp")
	was.Path, was.Args[0] = before, before
	t.Cleanup(func() {
		// The program that made it deletes it.
		cmd := command(hosts[older], "delete", tasks.Sandbox, "--force")
		cmd.Path, cmd.Args[0] = before, before
		if err := cmd.Run(); err != nil {
			t.Errorf("cannot delete what the older program made: %v", err)
		}
	})
	past := count(t, was)
	theirs := exec.Command(filepath.Join(dir, "node_modules", ".bin", "mcp-server-filesystem"), other.Repo)
	theirs.Dir, theirs.Stderr = other.Repo, io.Discard
	files := count(t, theirs)
	lists := [sides]int{program.begin(), past.begin(), files.begin()}

	var names []string
	costs := map[string]*[sides]cost{}
	for _, s := range tasks.Sixteen() {
		if costs[s.Task] == nil {
			costs[s.Task] = &[sides]cost{}
			names = append(names, s.Task)
		}
		c := costs[s.Task]
		for side, server := range map[int]*counted{ours: program, older: past} {
			call := s.Ours
			if side == older && call.Tool == "sandbox-diff" {
				call.Args = args{} // it knew no "since", so a model asked for all
			}
			began := time.Now()
			if s.Fails {
				_, size := server.ask("tools/call", args{"name": call.Tool, "arguments": call.Args})
				c[side].add(size, time.Since(began))
			} else {
				c[side].add(server.do(call), time.Since(began))
			}
		}
		for _, one := range s.Theirs {
			began := time.Now()
			if one.Tool != "shell" {
				c[beside].add(files.do(one), time.Since(began))
				continue
			}
			// A call of a client's own shell, in the same envelope.
			cmd := exec.Command("bash", "-c", one.Args["command"].(string))
			cmd.Dir, cmd.Env = other.Repo, other.Env
			output, _ := cmd.CombinedOutput() // a failure is in the output, as a model sees it
			envelope, err := json.Marshal([]any{
				args{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": args{"name": "shell", "arguments": one.Args}},
				args{"jsonrpc": "2.0", "id": 1, "result": args{"content": []args{{"type": "text", "text": string(output)}}}},
			})
			if err != nil {
				t.Fatal(err)
			}
			c[beside].add(len(envelope), time.Since(began))
		}
	}
	for _, host := range hosts {
		if lacks := tasks.Check(host); lacks != "" {
			t.Error(lacks)
		}
	}
	var all [sides]cost
	for _, c := range costs {
		for i := range all {
			all[i].calls, all[i].bytes, all[i].took = all[i].calls+c[i].calls, all[i].bytes+c[i].bytes, all[i].took+c[i].took
		}
	}
	if 2*all[ours].bytes > all[older].bytes {
		t.Errorf("the tasks take %d bytes, more than half of the %d before", all[ours].bytes, all[older].bytes)
	}
	page := besidePage(names, costs, all, lists)
	t.Log("\n" + page)
	if err := os.WriteFile("../../docs/reference/tools-beside.md", []byte(page), 0o644); err != nil {
		t.Fatal(err)
	}
}

func besidePage(names []string, costs map[string]*[sides]cost, all [sides]cost, lists [sides]int) string {
	var b strings.Builder
	b.WriteString(`# The same tasks by other tools

<!-- Made by: make test-beside -->

Three tasks in sixteen steps, done by the tools of ` + "`litterbox mcp`" + ` now and before they were made short (the program of commit ` + "`ac5132e`" + `), and by the reference filesystem server from npm with a shell beside it: the calls, the bytes of requests and answers, and the seconds that the tools took. What a model pays in tokens goes with the bytes. The other server works in the checkout itself, without isolation, and commits by hand; litterbox commits each step.

| task | calls | bytes | seconds | calls before | bytes before | seconds before | calls beside | bytes beside | seconds beside |
|---|---|---|---|---|---|---|---|---|---|
`)
	row := func(name string, c [sides]cost) {
		fmt.Fprintf(&b, "| %s |", name)
		for _, one := range c {
			fmt.Fprintf(&b, " %d | %d | %.2f |", one.calls, one.bytes, one.took.Seconds())
		}
		b.WriteString("\n")
	}
	for _, name := range names {
		row(name, *costs[name])
	}
	row("all", all)
	fmt.Fprintf(&b, "| list of tools, once in a session | 1 | %d | | 1 | %d | | 1 | %d | |\n", lists[ours], lists[older], lists[beside])
	b.WriteString("\nThe list beside is that of the filesystem server alone; a shell's tool comes on top of it. The same sixteen calls were made before, but for one diff that could not yet begin at a milestone. Seconds depend on the machine and on what else it did.\n")
	return b.String()
}
