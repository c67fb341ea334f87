package agents_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/test/program"
)

// client is a real client, run headless.
type client struct {
	name   string
	module string // its package in npm
	// prepare points it at the model and does for it what a human does once:
	// trusting the folder, approving the server.
	prepare func(h *program.Host, m *model) (env []string)
	argv    []string
	// write and shell are calls of its own tools: a file in the repository.
	write, shell func(h *program.Host) call
}

// clients have everything that talks to their makers turned off: the model is
// on loopback, and nothing else may be asked.
var clients = []client{
	{
		name: "claude", module: "@anthropic-ai/claude-code",
		prepare: func(h *program.Host, m *model) []string {
			h.Put(filepath.Join(h.Home, ".claude.json"), text(object{
				"hasCompletedOnboarding": true,
				"projects":               object{h.Repo: object{"hasTrustDialogAccepted": true, "enabledMcpjsonServers": []string{"litterbox"}}},
			}))
			return []string{
				"ANTHROPIC_BASE_URL=" + m.URL, "ANTHROPIC_API_KEY=stub", "ENABLE_TOOL_SEARCH=false", "MCP_CONNECTION_NONBLOCKING=false",
				"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1", "DISABLE_AUTOUPDATER=1", "IS_SANDBOX=1",
			}
		},
		argv: []string{"node_modules/@anthropic-ai/claude-code-linux-x64/claude", "-p", "Do it", "--model", "claude-sonnet-4-5", "--dangerously-skip-permissions"},
		write: func(h *program.Host) call {
			return call{"Write", object{"file_path": h.Repo + "/own-write.txt", "content": "x\n"}}
		},
		shell: func(h *program.Host) call {
			return call{"Bash", object{"command": "echo x >" + h.Repo + "/own-shell.txt", "description": "write"}}
		},
	},
	{
		name: "codex", module: "@openai/codex",
		prepare: func(h *program.Host, m *model) []string {
			h.Put(filepath.Join(h.Home, ".codex", "config.toml"), `model = "stub"
model_provider = "stub"
check_for_update_on_startup = false
sandbox_mode = "danger-full-access"
approval_policy = "never"
[model_providers.stub]
name = "stub"
base_url = "`+m.URL+`/v1"
wire_api = "responses"
env_key = "STUB_KEY"
[analytics]
enabled = false
[projects."`+h.Repo+`"]
trust_level = "trusted"
`)
			// It makes no helpers of its own below a temporary directory.
			return []string{"STUB_KEY=stub", "TMPDIR=" + h.Dir}
		},
		argv: []string{"node_modules/.bin/codex", "exec", "--json", "Do it"},
		write: func(h *program.Host) call {
			return call{"exec_command", object{"cmd": "apply_patch <<'X'\n*** Begin Patch\n*** Add File: own-write.txt\n+x\n*** End Patch\nX\n"}}
		},
		shell: func(h *program.Host) call {
			return call{"exec_command", object{"cmd": "echo x >own-shell.txt"}}
		},
	},
	{
		name: "gemini", module: "@google/gemini-cli",
		prepare: func(h *program.Host, m *model) []string {
			h.Put(filepath.Join(h.Home, ".gemini", "trustedFolders.json"), text(object{h.Repo: "TRUST_FOLDER"}))
			h.Put(filepath.Join(h.Home, ".gemini", "settings.json"), text(object{
				"security": object{"auth": object{"selectedType": "gemini-api-key"}, "folderTrust": object{"enabled": true}},
				"general":  object{"enableAutoUpdate": false, "disableAutoUpdate": true}, "privacy": object{"usageStatisticsEnabled": false},
				"telemetry": object{"enabled": false},
			}))
			return []string{"GOOGLE_GEMINI_BASE_URL=" + m.URL, "GEMINI_API_KEY=stub", "GEMINI_CLI_NO_RELAUNCH=true"}
		},
		argv: []string{"node_modules/.bin/gemini", "-p", "Do it", "-m", "gemini-2.5-flash", "--approval-mode", "yolo"},
		write: func(h *program.Host) call {
			return call{"write_file", object{"file_path": h.Repo + "/own-write.txt", "content": "x\n"}}
		},
		shell: func(h *program.Host) call {
			return call{"run_shell_command", object{"command": "echo x >own-shell.txt", "description": "write"}}
		},
	},
	{
		name: "opencode", module: "opencode-ai",
		prepare: func(h *program.Host, m *model) []string {
			h.Put(filepath.Join(h.Home, ".config", "opencode", "opencode.json"), text(object{
				"provider": object{"stub": object{
					"npm": "@ai-sdk/openai-compatible", "name": "stub", "options": object{"baseURL": m.URL + "/v1", "apiKey": "stub"},
					"models": object{"stub": object{"name": "stub", "tool_call": true}},
				}},
				"model": "stub/stub", "small_model": "stub/stub", "autoupdate": false, "share": "disabled",
			}))
			return []string{"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1", "OPENCODE_DISABLE_SHARE=1"}
		},
		argv: []string{"node_modules/opencode-linux-x64-baseline/bin/opencode", "run", "--format", "json", "Do it"},
		write: func(h *program.Host) call {
			return call{"write", object{"filePath": h.Repo + "/own-write.txt", "content": "x\n"}}
		},
		shell: func(h *program.Host) call {
			return call{"bash", object{"command": "echo x >own-shell.txt", "description": "write"}}
		},
	},
}

// installed returns the directory with the clients. They take more than a gigabyte,
// so they are fetched only if LITTERBOX_TEST_AGENTS names a directory for them.
func installed(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("LITTERBOX_TEST_AGENTS")
	if dir == "" {
		t.Skip("LITTERBOX_TEST_AGENTS names no directory for the clients; see make test-agents")
	}
	wanted, err := os.ReadFile(filepath.Join("testdata", "package.json"))
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("LITTERBOX_TEST_AGENTS_NEWEST") != "" {
		wanted = newest(t, wanted)
	}
	if there, err := os.ReadFile(filepath.Join(dir, "package.json")); err != nil || !bytes.Equal(there, wanted) {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "package.json.new"), wanted, 0o644); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
		defer cancel()
		npm := exec.CommandContext(ctx, "sh", "-c", "cp package.json.new package.json && npm install --ignore-scripts --no-audit --no-fund || { rm -f package.json; exit 1; }")
		npm.Dir = dir
		if out, err := npm.CombinedOutput(); err != nil {
			t.Fatalf("cannot install the clients: %v\n%s", err, out)
		}
	}
	return dir
}

// run runs the client on a task in the repository; flags come before the task.
func (c client) run(t *testing.T, h *program.Host, dir string, env []string, flags ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	argv := slices.Insert(slices.Clone(c.argv), len(c.argv)-1, flags...)
	cmd := exec.CommandContext(ctx, filepath.Join(dir, argv[0]), argv[1:]...)
	cmd.Dir = h.Repo
	cmd.Env = append(slices.Clone(h.Env), env...)
	for i, v := range cmd.Env {
		if path, ok := strings.CutPrefix(v, "PATH="); ok {
			cmd.Env[i] = "PATH=" + filepath.Dir(h.Program("litterbox")) + ":" + path
		}
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Run(); err != nil {
		t.Logf("%s ended with %v", c.name, err)
	}
	return out.String()
}

// Each client does a task through litterbox's tools alone, and its work is
// commits on the sandbox's branch; with --exclusive its own tools change
// nothing, and without it they do.
func TestRealClients(t *testing.T) {
	dir := installed(t)
	for _, c := range clients {
		t.Run(c.name, func(t *testing.T) {
			t.Run("task", func(t *testing.T) { c.task(t, dir) })
			t.Run("exclusive", func(t *testing.T) { c.own(t, dir, true) })
			t.Run("control", func(t *testing.T) { c.own(t, dir, false) })
		})
	}
}

func (c client) task(t *testing.T, dir string) {
	h := built.New(t)
	m := newModel(t,
		call{"sandbox-create", object{"name": "Greet"}},
		call{"sandbox-write", object{"path": "greeting.txt", "content": "hello\n", "message": "Write a greeting"}},
		call{"sandbox-exec", object{"command": "cp greeting.txt copy.txt", "message": "Copy it"}},
		call{"sandbox-milestone", object{"message": "Greet twice"}},
	)
	env := c.prepare(h, m)
	h.Must("agent", "install", c.name, "--exclusive", "--rules")
	out := c.run(t, h, dir, env)
	if got := h.Command(h.Repo, "git", "show", "greet:copy.txt"); got.Stdout != "hello\n" {
		t.Fatalf("%+v\noffered: %q\nresults: %q\nstrange: %q\n%s", got, m.offered, m.results, m.strange, out)
	}
	if got := h.Git("log", "-1", "--format=%s", "greet"); got != "Greet twice" {
		t.Errorf("the last commit is %q", got)
	}
	if got := h.Command(h.Repo, "git", "status", "--short", "README", "greeting.txt", "copy.txt"); got.Stdout != "" {
		t.Errorf("the checkout has changed: %s", got.Stdout)
	}
	t.Logf("offered: %q", m.offered)
	if got := h.Must("audit", "greet"); !strings.Contains(got, "sandbox-milestone") {
		t.Errorf("the audit log: %s", got)
	}
}

func (c client) own(t *testing.T, dir string, exclusive bool) {
	h := built.New(t)
	m := newModel(t, c.write(h), c.shell(h), call{"sandbox-create", object{"name": "Reached"}})
	env := c.prepare(h, m)
	args := []string{"agent", "install", c.name}
	if exclusive {
		args = append(args, "--exclusive")
	}
	h.Must(args...)
	out := c.run(t, h, dir, env)
	for _, name := range []string{"own-write.txt", "own-shell.txt"} {
		_, err := os.Stat(filepath.Join(h.Repo, name))
		if wrote := err == nil; wrote == exclusive {
			t.Errorf("%s: exclusive %t, wrote %t\noffered: %q\nresults: %q\nstrange: %q\n%s", name, exclusive, wrote, m.offered, m.results, m.strange, out)
		}
	}
	// It has come to the end of its script, with litterbox at hand.
	if got := h.Litterbox("status", "reached"); exclusive && got.Code != 0 {
		t.Errorf("%+v\noffered: %q\nresults: %q", got, m.offered, m.results)
	}
	t.Logf("offered: %q\nresults: %q\nstrange: %q", m.offered, m.results, m.strange)
}

// newest asks npm for the newest version of each client, so that changed
// settings or tools are found before users find them.
func newest(t *testing.T, pinned []byte) []byte {
	t.Helper()
	var wanted struct {
		Private      bool              `json:"private"`
		Dependencies map[string]string `json:"dependencies"`
	}
	if err := json.Unmarshal(pinned, &wanted); err != nil {
		t.Fatal(err)
	}
	for name, version := range wanted.Dependencies {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		out, err := exec.CommandContext(ctx, "npm", "view", name, "version").Output()
		cancel()
		if err != nil {
			t.Fatalf("cannot find the newest version of %s: %v", name, err)
		}
		found := strings.TrimSpace(string(out))
		t.Logf("%s: %s, pinned %s", name, found, version)
		wanted.Dependencies[name] = found
	}
	content, err := json.Marshal(wanted)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
