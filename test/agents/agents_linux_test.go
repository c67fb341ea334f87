// Package agents_test installs the true litterbox into the settings of agents'
// clients, and lets the real clients work with it against a stand-in for their
// models.
//
// Start reading at TestInstall; TestRealClients needs what make test-agents
// fetches.
package agents_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/test/program"
)

var built *program.Built

func TestMain(m *testing.M) { os.Exit(program.Main(m, func(b *program.Built) { built = b })) }

// files are where clients have their settings, by their documentation, below
// the repository and below the home; "" where a client has no such scope.
var files = map[string][2]string{
	"claude":   {".mcp.json", ".claude.json"},
	"codex":    {".codex/config.toml", ".codex/config.toml"},
	"cursor":   {".cursor/mcp.json", ".cursor/mcp.json"},
	"vscode":   {".vscode/mcp.json", ".config/Code/User/mcp.json"},
	"gemini":   {".gemini/settings.json", ".gemini/settings.json"},
	"opencode": {"opencode.json", ".config/opencode/opencode.json"},
	"goose":    {"", ".config/goose/config.yaml"},
}

// mine are settings that exist before, by the suffix of the file's name.
var mine = map[string]string{
	".json": "{\n  // mine\n  \"theme\": \"dark\",\n}",
	".toml": "# mine\nmodel = \"m\"\r\n\r\n[tui]\r\n",
	".yaml": "# mine\nGOOSE_MODE: auto\nextensions: {}\n",
}

// The true program installs into the files of every client, in both scopes,
// into missing and existing files; the entry it wrote starts the server; and
// it removes everything to the byte.
func TestInstall(t *testing.T) {
	t.Parallel()
	for name, paths := range files {
		for i, scope := range []string{"project", "user"} {
			t.Run(name+"/"+scope, func(t *testing.T) {
				t.Parallel()
				h := built.New(t)
				if paths[i] == "" {
					if got := h.Litterbox("agent", "install", name, "--scope", scope); got.Code != 6 {
						t.Errorf("%+v", got)
					}
					return
				}
				file := filepath.Join([]string{h.Repo, h.Home}[i], paths[i])
				for _, before := range []string{"", mine[filepath.Ext(file)]} {
					if before != "" {
						h.Put(file, before)
					}
					install(t, h, name, scope, file, before)
				}
			})
		}
	}
}

func install(t *testing.T, h *program.Host, name, scope, file, before string) {
	clean := h.Git("status", "--short", "--untracked-files=all")
	h.Must("agent", "install", name, "--scope", scope, "--print")
	if got := h.Git("status", "--short", "--untracked-files=all"); got != clean {
		t.Errorf("--print wrote %s", got)
	}
	var made struct {
		Changes []struct{ Agent, Scope, File, Action string }
		Next    []struct{ Steps []string }
	}
	decode(t, h.Must("agent", "install", name, "--scope", scope, "--json"), &made)
	if len(made.Changes) != 1 || made.Changes[0].Action != map[bool]string{true: "created", false: "changed"}[before == ""] || len(made.Next) != 1 || len(made.Next[0].Steps) == 0 {
		t.Errorf("%+v", made)
	}
	content, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(content), "litterbox") {
		t.Fatalf("%s: %q, %v", file, content, err)
	}
	var listed []struct {
		Agent     string
		Installed []struct{ Scope, State, File string }
	}
	decode(t, h.Must("agent", "list", "--json"), &listed)
	for _, one := range listed {
		if there := len(one.Installed) == 1 && one.Installed[0].State == "installed" && one.Installed[0].Scope == scope; there != (one.Agent == name) {
			t.Errorf("listed: %+v", one)
		}
	}
	h.Must("agent", "uninstall", name)
	content, err = os.ReadFile(file)
	if before == "" && !os.IsNotExist(err) || before != "" && string(content) != before {
		t.Errorf("%s after it: %q, %v", file, content, err)
	}
	if got := h.Git("status", "--short", "--untracked-files=all"); got != clean {
		t.Errorf("left behind: %s", got)
	}
}

func decode(t *testing.T, document string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(document), into); err != nil {
		t.Fatalf("%v: %s", err, document)
	}
}

// What was written is what a client needs to start the server: the command is
// run as the client would, and speaks the protocol.
func TestInstalledEntryStarts(t *testing.T) {
	t.Parallel()
	h := built.New(t)
	h.Must("agent", "install", "claude")
	var config struct {
		MCPServers map[string]struct {
			Command string
			Args    []string
		}
	}
	content, err := os.ReadFile(filepath.Join(h.Repo, ".mcp.json"))
	if err != nil {
		t.Fatal(err)
	}
	decode(t, string(content), &config)
	entry := config.MCPServers["litterbox"]
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	server := exec.CommandContext(ctx, h.Program(entry.Command), entry.Args...)
	server.Dir, server.Env, server.Stderr = h.Repo, h.Env, os.Stderr
	in, inErr := server.StdinPipe()
	out, outErr := server.StdoutPipe()
	if err := errors.Join(inErr, outErr, server.Start()); err != nil {
		t.Fatal(err)
	}
	// The input stays open until the answer comes: a client that goes away gets none.
	if _, err := io.WriteString(in, hello+"\n"); err != nil {
		t.Error(err)
	}
	answer, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.Contains(answer, `"serverInfo"`) {
		t.Errorf("it answers %q, %v", answer, err)
	}
	if err := errors.Join(in.Close(), server.Wait()); err != nil {
		t.Error(err)
	}
	if got := h.Must("audit"); !strings.Contains(got, "agent-install") {
		t.Errorf("the audit log: %s", got)
	}
}
