package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os/exec"
	"time"
)

// agent is an MCP client that knows just enough to measure.
type agent struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	id  int
}

// mcp measures how long agents wait, beside the same from the command line.
func (b *bench) mcp(repo, size string) error {
	a, err := b.agent(repo)
	if err != nil {
		return err
	}
	if _, err := a.call("sandbox-create", map[string]any{"name": "agent"}); err != nil {
		return err
	}
	command := map[string]any{"command": "true", "message": "Nothing"}
	if _, err := a.call("sandbox-exec", command); err != nil { // asks for the shell, once
		return err
	}
	file := map[string]any{"path": "dir0/file0.txt"}
	for _, pair := range []struct {
		what, tool, beside string
		arguments          map[string]any
		command            []string
	}{
		{"sandbox-exec of true, with commit", "sandbox-exec", "litterbox exec", command, []string{"exec", "agent", "--", "true"}},
		{"sandbox-read", "sandbox-read", "litterbox read", file, []string{"read", "agent", "dir0/file0.txt"}},
	} {
		timings, err := b.measure(
			func(int) error { _, err := a.call(pair.tool, pair.arguments); return err },
			func(int) error { return b.command(repo, append([]string{b.litterbox}, pair.command...)...) },
		)
		if err != nil {
			return err
		}
		b.timed(pair.what, size, timings[0], pair.beside, timings[1])
	}
	const calls = 300
	start := time.Now()
	for range calls {
		if _, err := a.call("sandbox-read", file); err != nil {
			return err
		}
	}
	b.alone("calls per second in one session (sandbox-read)", size, math.Round(calls/time.Since(start).Seconds()), plain)
	return errors.Join(a.in.Close(), a.cmd.Wait(), b.command(repo, b.litterbox, "delete", "--force", "agent"))
}

// agent starts a server and begins a session.
func (b *bench) agent(repo string) (*agent, error) {
	cmd := exec.Command(b.litterbox, "mcp")
	cmd.Dir, cmd.Env = repo, b.env
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	a := &agent{cmd: cmd, in: in, out: bufio.NewReader(out)}
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	_, err = a.request("initialize", map[string]any{
		"protocolVersion": "2025-11-25", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "bench", "version": "1"},
	})
	took := time.Since(start)
	b.timed("start of the MCP server to its first answer", "", once(took), "", timing{})
	if err == nil {
		err = a.send(map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"})
	}
	return a, err
}

func (a *agent) send(message any) error {
	line, err := json.Marshal(message)
	if err == nil {
		_, err = a.in.Write(append(line, '\n'))
	}
	return err
}

// request sends a request and waits for its answer.
func (a *agent) request(method string, params any) (json.RawMessage, error) {
	a.id++
	if err := a.send(map[string]any{"jsonrpc": "2.0", "id": a.id, "method": method, "params": params}); err != nil {
		return nil, err
	}
	for {
		line, err := a.out.ReadBytes('\n')
		if err != nil {
			return nil, err
		}
		var answer struct {
			ID     int
			Result json.RawMessage
			Error  *struct{ Message string }
		}
		if err := json.Unmarshal(line, &answer); err != nil {
			return nil, err
		}
		switch {
		case answer.ID != a.id:
			continue
		case answer.Error != nil:
			return nil, errors.New(answer.Error.Message)
		}
		return answer.Result, nil
	}
}

func (a *agent) call(tool string, arguments map[string]any) (json.RawMessage, error) {
	result, err := a.request("tools/call", map[string]any{"name": tool, "arguments": arguments})
	var failed struct{ IsError bool }
	if err == nil {
		err = json.Unmarshal(result, &failed)
	}
	if err == nil && failed.IsError {
		err = fmt.Errorf("%s: %s", tool, result)
	}
	return result, err
}
