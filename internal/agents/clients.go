package agents

import (
	"path/filepath"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/patch"
)

// in is a file of the repository for the project's scope, and one of the
// user's else.
func in(scope Scope, project, user string) string {
	if scope == Project {
		return project
	}
	return user
}

// only is a list of one path, or of none for "".
func only(path string) []string {
	if path == "" {
		return nil
	}
	return []string{path}
}

// plain is the entry that most clients have.
func plain(command string) patch.Object { return with(command, "mcp") }

// with is an entry with arguments of its own.
func with(command string, args ...string) patch.Object {
	return patch.Object{{Key: "command", Value: command}, {Key: "args", Value: args}}
}

// claude: code.claude.com/docs, "MCP" and "Settings".
func claude() Client {
	dir := func(h Host) string { return h.own("CLAUDE_CONFIG_DIR", ".claude") }
	return Client{
		Name: "claude", Title: "Claude Code", programs: []string{"claude"},
		homes:  func(h Host) []string { return []string{dir(h)} },
		format: patch.JSON,
		config: func(h Host, s Scope) []string {
			user := h.home(".claude.json")
			if filepath.IsAbs(h.Env("CLAUDE_CONFIG_DIR")) {
				user = filepath.Join(dir(h), ".claude.json")
			}
			return only(in(s, ".mcp.json", user))
		},
		path: []string{"mcpServers", ServerName},
		entry: func(command string) patch.Object {
			return append(patch.Object{{Key: "type", Value: "stdio"}}, plain(command)...)
		},
		exclusive: func(h Host, s Scope) []setting {
			file := in(s, ".claude/settings.json", filepath.Join(dir(h), "settings.json"))
			return []setting{
				// Each by its name: denying Edit alone leaves Write.
				{file: file, format: patch.JSON, path: []string{"permissions", "deny"}, items: claudeTools()},
				{file: file, format: patch.JSON, path: []string{"permissions", "allow"}, items: []string{"mcp__" + ServerName}},
			}
		},
		rules: func(h Host, s Scope) string { return in(s, "CLAUDE.md", filepath.Join(dir(h), "CLAUDE.md")) },
		next: func(s Scope, exclusive bool) []string {
			steps := []string{"restart claude"}
			if s == Project {
				steps = append(steps, "trust this folder when it asks, and approve the server litterbox of .mcp.json")
			}
			return append(steps, "/mcp in it shows litterbox as connected")
		},
	}
}

// claudeTools are the tools of Claude Code that run commands, write files or
// check out a worktree.
func claudeTools() []string {
	return []string{"Bash", "PowerShell", "Monitor", "EnterWorktree", "Edit", "Write", "NotebookEdit"}
}

// codex: developers.openai.com/codex, "Configuration".
func codex() Client {
	dir := func(h Host) string { return h.own("CODEX_HOME", ".codex") }
	config := func(h Host, s Scope) []string {
		return only(in(s, ".codex/config.toml", filepath.Join(dir(h), "config.toml")))
	}
	return Client{
		Name: "codex", Title: "Codex", programs: []string{"codex"},
		homes:  func(h Host) []string { return []string{dir(h)} },
		format: patch.TOML, config: config,
		path: []string{"mcp_servers", ServerName},
		// It waits 30 s for an answer. It starts servers with little of the
		// environment: without these variables litterbox would store and look for
		// everything elsewhere.
		entry: func(command string) patch.Object {
			return append(with(command, "mcp", "--answer-within", "25s"), patch.Field{Key: "env_vars", Value: []string{"XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"}})
		},
		// There is no shell then; patches, and anything else it may run, can write
		// nothing. It would ask the human for an exception; never removes the
		// question.
		exclusive: func(Host, Scope) []setting {
			return []setting{
				{format: patch.TOML, path: []string{"sandbox_mode"}, value: "read-only"},
				{format: patch.TOML, path: []string{"approval_policy"}, value: "never"},
				{format: patch.TOML, path: []string{"features", "shell_tool"}, value: false},
			}
		},
		granted: patch.Object{{Key: "default_tools_approval_mode", Value: "approve"}},
		rules:   func(h Host, s Scope) string { return in(s, "AGENTS.md", filepath.Join(dir(h), "AGENTS.md")) },
		next: func(s Scope, exclusive bool) []string {
			steps := []string{"restart codex"}
			if s == Project {
				steps = append(steps, "trust this folder when it asks: Codex reads .codex/config.toml, and what it denies, in trusted folders only")
			}
			if exclusive {
				steps = append(steps,
					"start it without --dangerously-bypass-approvals-and-sandbox: with that flag its apply_patch writes past this denial",
					"to have Codex refuse that flag in every repository of this machine, let root write "+strings.TrimSpace(CodexRequirements)+" into /etc/codex/requirements.toml")
			}
			return append(steps, "/mcp in it shows the tools of litterbox")
		},
	}
}

// CodexRequirements is what an administrator writes into
// /etc/codex/requirements.toml so that Codex has its own sandbox whatever its
// flags: developers.openai.com/codex, "Managed configuration". It holds for every
// repository of the machine, so Install does not write it.
const CodexRequirements = "allowed_sandbox_modes = [\"read-only\"]\n"

// cursor: cursor.com/docs/mcp.
func cursor() Client {
	return Client{
		Name: "cursor", Title: "Cursor", programs: []string{"cursor", "cursor-agent"},
		homes:  func(h Host) []string { return []string{h.home(".cursor")} },
		format: patch.JSON,
		config: func(h Host, s Scope) []string { return only(in(s, ".cursor/mcp.json", h.home(".cursor", "mcp.json"))) },
		path:   []string{"mcpServers", ServerName}, entry: inFolder,
		without: "Cursor has no file that denies its own tools: turn off its auto-run, in Settings under Agents",
		rules:   func(_ Host, s Scope) string { return in(s, "AGENTS.md", "") },
		next: func(Scope, bool) []string {
			return []string{"restart Cursor", "turn on litterbox in its settings, under MCP, when it asks"}
		},
	}
}

// inFolder is an entry for editors, which start servers in the directory where they
// were started themselves.
func inFolder(command string) patch.Object {
	return patch.Object{
		{Key: "type", Value: "stdio"}, {Key: "command", Value: command},
		{Key: "args", Value: []string{"-C", "${workspaceFolder}", "mcp"}},
	}
}

// vscode: code.visualstudio.com/docs, "MCP configuration reference".
func vscode() Client {
	dir := func(h Host) string {
		if h.System == "darwin" {
			return h.home("Library", "Application Support", "Code")
		}
		return h.config("Code")
	}
	return Client{
		Name: "vscode", Title: "VS Code", programs: []string{"code"},
		homes:  func(h Host) []string { return []string{dir(h)} },
		format: patch.JSON,
		config: func(h Host, s Scope) []string {
			return only(in(s, ".vscode/mcp.json", filepath.Join(dir(h), "User", "mcp.json")))
		},
		path: []string{"servers", ServerName}, entry: inFolder,
		without: "VS Code has no file that denies its own tools: choose tools in the chat's tool picker",
		rules:   func(_ Host, s Scope) string { return in(s, "AGENTS.md", "") },
		next: func(Scope, bool) []string {
			return []string{"trust the folder in VS Code", "start litterbox with “MCP: List Servers” and choose its tools in the chat's tool picker"}
		},
	}
}

// gemini: geminicli.com/docs, "Configuration" and "MCP servers".
func gemini() Client {
	config := func(h Host, s Scope) []string {
		return only(in(s, ".gemini/settings.json", h.home(".gemini", "settings.json")))
	}
	return Client{
		Name: "gemini", Title: "Gemini CLI", programs: []string{"gemini"},
		homes:  func(h Host) []string { return []string{h.home(".gemini")} },
		format: patch.JSON, config: config,
		path: []string{"mcpServers", ServerName}, entry: plain,
		// The policy engine takes the place of tools.exclude. Policies in a
		// project's own directory are turned off in 0.61; its settings name the
		// file, and the list stays for versions without the engine.
		exclusive: func(h Host, s Scope) []setting {
			file := in(s, ".gemini/policies/litterbox.toml", h.home(".gemini", "policies", "litterbox.toml"))
			all := []setting{{file: file, whole: geminiPolicy()}}
			if s == Project {
				all = append(all, setting{format: patch.JSON, path: []string{"policyPaths"}, items: []string{file}})
			}
			return append(all, setting{format: patch.JSON, path: []string{"tools", "exclude"}, items: geminiTools()})
		},
		granted: patch.Object{{Key: "trust", Value: true}},
		rules:   func(h Host, s Scope) string { return in(s, "GEMINI.md", h.home(".gemini", "GEMINI.md")) },
		next: func(s Scope, exclusive bool) []string {
			steps := []string{"restart gemini"}
			if s == Project {
				steps = append(steps, "trust this folder when it asks: Gemini CLI reads .gemini/settings.json, and what it denies, in trusted folders only")
			}
			return append(steps, "/mcp in it shows the tools of litterbox")
		},
	}
}

// geminiTools are the tools of Gemini CLI that run commands or write files.
func geminiTools() []string {
	return []string{"run_shell_command", "write_file", "replace"}
}

// geminiPolicy is a policy that denies them in every approval mode:
// geminicli.com/docs, "Policy engine". 999 is the highest priority there is.
func geminiPolicy() string {
	return `# Written by litterbox agent install gemini --exclusive; uninstall removes it.
[[rule]]
toolName = ["` + strings.Join(geminiTools(), `", "`) + `"]
decision = "deny"
priority = 999
denyMessage = "Work in a sandbox with the tools of litterbox."
`
}

// opencode: opencode.ai/docs, "Config" and "Permissions".
func opencode() Client {
	config := func(h Host, s Scope) []string {
		if s == Project {
			return []string{"opencode.json", "opencode.jsonc"}
		}
		return []string{h.config("opencode", "opencode.json"), h.config("opencode", "opencode.jsonc")}
	}
	return Client{
		Name: "opencode", Title: "OpenCode", programs: []string{"opencode"},
		homes:  func(h Host) []string { return []string{h.config("opencode")} },
		format: patch.JSON, config: config,
		path: []string{"mcp", ServerName},
		also: []setting{{format: patch.JSON, path: []string{"$schema"}, value: "https://opencode.ai/config.json"}},
		entry: func(command string) patch.Object {
			return patch.Object{{Key: "type", Value: "local"}, {Key: "command", Value: []string{command, "mcp"}}, {Key: "enabled", Value: true}}
		},
		exclusive: func(Host, Scope) []setting {
			return []setting{ // edit is for writing and patching, too
				{format: patch.JSON, path: []string{"permission", "bash"}, value: "deny"},
				{format: patch.JSON, path: []string{"permission", "edit"}, value: "deny"},
			}
		},
		rules: func(h Host, s Scope) string { return in(s, "AGENTS.md", h.config("opencode", "AGENTS.md")) },
		next: func(Scope, bool) []string {
			return []string{"restart opencode", "opencode mcp list shows litterbox as connected"}
		},
	}
}

// goose: goose-docs.ai, "Configuration Files".
func goose() Client {
	return Client{
		Name: "goose", Title: "Goose", programs: []string{"goose"},
		homes:  func(h Host) []string { return []string{h.config("goose")} },
		format: patch.YAML,
		config: func(h Host, s Scope) []string { return only(in(s, "", h.config("goose", "config.yaml"))) },
		path:   []string{"extensions", ServerName},
		entry: func(command string) patch.Object {
			return patch.Object{
				{Key: "enabled", Value: true}, {Key: "type", Value: "stdio"}, {Key: "name", Value: ServerName},
				{Key: "description", Value: "Sandboxes for this repository, each on a branch of its own"},
				{Key: "cmd", Value: command}, {Key: "args", Value: []string{"mcp"}},
				{Key: "envs", Value: patch.Object{}}, {Key: "env_keys", Value: []string{}}, {Key: "timeout", Value: 300},
			}
		},
		without: "Goose has no file that denies its own tools in one repository: turn off its extension developer with goose configure",
		rules:   func(h Host, s Scope) string { return in(s, "", h.config("goose", ".goosehints")) },
		next: func(Scope, bool) []string {
			return []string{"start a new session of goose, in the repository"}
		},
	}
}
