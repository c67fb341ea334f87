package agents_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/agents"
	"github.com/litterbox-sandbox/litterbox/internal/profile"
)

// belongings brings from a home with files of these names.
func belongings(t *testing.T, client string, programs bool, variables map[string]string, files map[string]string) (brought agents.Brought, home string) {
	t.Helper()
	home = t.TempDir()
	for name, content := range files {
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	known, ok := profile.ByName(client)
	if !ok {
		t.Fatalf("there is no client %q", client)
	}
	host := agents.Host{Home: home, Env: func(name string) string {
		if at := variables[name]; at != "" {
			return filepath.Join(home, at)
		}
		return ""
	}}
	return host.Bring(known.Belongings, programs), home
}

func pathsOf(brought agents.Brought) (all []string) {
	for _, file := range brought.Files {
		all = append(all, file.Path)
	}
	return all
}

// Unless asked for, nothing that runs a program comes, nor any key.
func TestBringHarmless(t *testing.T) {
	files := map[string]string{
		".claude/CLAUDE.md":             "Answer in French.\n",
		".claude/rules/go/style.md":     "Use tabs.\n",
		".claude/commands/deploy.md":    "!`deploy`\n",
		".claude/agents/reviewer.md":    "Review.\n",
		".claude/skills/x/run.sh":       "#!/bin/sh\n",
		".claude/hooks/guard.sh":        "#!/bin/sh\n",
		".claude/.credentials.json":     "{}",
		".claude/projects/x/talk.jsonl": "{}",
		".claude/settings.json": `{ // mine
			"model": "opus", "language": "french", "env": {"TOKEN": "t"}, "apiKeyHelper": "cat key", "permissions": {"deny": ["Bash"]},
			"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "~/.claude/hooks/guard.sh"}]}]},
			"statusLine": {"type": "command", "command": "date"},
		}`,
		".claude.json":      `{"theme": "light", "mcpServers": {"files": {"command": "npx", "args": ["files"], "env": {"TOKEN": "t"}}, "litterbox": {"command": "litterbox"}}, "projects": {"/x": {}}, "primaryApiKey": "k"}`,
		".codex/AGENTS.md":  "Be brief.\n",
		".codex/prompts/a":  "Do it.\n",
		".codex/auth.json":  "{}",
		".codex/hooks.json": "{}",
		".codex/config.toml": "model = \"gpt-5\"\nmodel_reasoning_effort = \"high\"\nnotify = [\"say\"]\nproject_doc_max_bytes = 5\n" +
			"[mcp_servers.files]\ncommand = \"npx\"\nargs = [\"files\"]\nstartup_timeout_sec = 5\n[mcp_servers.files.env]\nTOKEN = \"t\"\n[shell_environment_policy.set]\nTOKEN = \"t\"\n[mcp_servers.litterbox]\ncommand = \"litterbox\"\n",
		".gemini/GEMINI.md":              "Be kind.\n",
		".gemini/commands/x.toml":        "prompt = \"!{date}\"\n",
		".gemini/settings.json":          `{"ui": {"theme": "Ayu"}, "general": {"vimMode": true, "preferredEditor": "vim"}, "mcpServers": {"a": {"command": "a", "headers": {"Authorization": "Bearer t"}}}, "tools": {"discoveryCommand": "find", "exclude": ["x"]}}`,
		".config/opencode/AGENTS.md":     "Be quick.\n",
		".config/opencode/plugin/x.js":   "x\n",
		".config/opencode/opencode.json": `{"theme": "nord", "model": "own/model", "provider": {"own": {"options": {"apiKey": "t"}}}, "mcp": {"a": {"type": "local", "command": ["a"], "environment": {"TOKEN": "t"}}}}`,
	}
	for client, want := range map[string]agents.Brought{
		"claude": {
			Files: []agents.BroughtFile{
				{Path: ".claude/CLAUDE.md", Content: []byte(files[".claude/CLAUDE.md"])},
				{Path: ".claude/rules/go/style.md", Content: []byte(files[".claude/rules/go/style.md"])},
			},
			Settings: map[string]map[string]any{".claude/settings.json": {"model": "opus", "language": "french"}, ".claude.json": {"theme": "light"}},
		},
		"codex": {
			Files: []agents.BroughtFile{
				{Path: ".codex/AGENTS.md", Content: []byte(files[".codex/AGENTS.md"])},
				{Path: ".codex/prompts/a", Content: []byte(files[".codex/prompts/a"])},
			},
			Settings: map[string]map[string]any{".codex/config.toml": {"model": "gpt-5", "model_reasoning_effort": "high", "project_doc_max_bytes": int64(5)}},
		},
		"gemini": {
			Files:    []agents.BroughtFile{{Path: ".gemini/GEMINI.md", Content: []byte(files[".gemini/GEMINI.md"])}},
			Settings: map[string]map[string]any{".gemini/settings.json": {"ui": map[string]any{"theme": "Ayu"}, "general": map[string]any{"vimMode": true}}},
		},
		"opencode": {
			Files:    []agents.BroughtFile{{Path: ".config/opencode/AGENTS.md", Content: []byte(files[".config/opencode/AGENTS.md"])}},
			Settings: map[string]map[string]any{".config/opencode/opencode.json": {"theme": "nord"}},
		},
	} {
		got, _ := belongings(t, client, false, nil, files)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", client, diff)
		}
	}

	// The control: asked for, it comes; keys, and litterbox's own parts, never do.
	all, _ := belongings(t, "claude", true, nil, files)
	for _, path := range []string{".claude/commands/deploy.md", ".claude/agents/reviewer.md", ".claude/skills/x/run.sh", ".claude/hooks/guard.sh"} {
		if !slices.Contains(pathsOf(all), path) {
			t.Errorf("%s does not come when it is asked for", path)
		}
	}
	if settings := all.Settings[".claude/settings.json"]; settings["hooks"] == nil || settings["statusLine"] == nil || settings["env"] != nil || settings["permissions"] != nil || settings["apiKeyHelper"] != nil {
		t.Errorf("%v", settings)
	}
	if diff := cmp.Diff(map[string]any{"files": map[string]any{"command": "npx", "args": []any{"files"}}}, all.Settings[".claude.json"]["mcpServers"]); diff != "" {
		t.Error(diff)
	}
	all, _ = belongings(t, "codex", true, nil, files)
	if diff := cmp.Diff(map[string]any{"files": map[string]any{"command": "npx", "args": []any{"files"}, "startup_timeout_sec": int64(5)}}, all.Settings[".codex/config.toml"]["mcp_servers"]); diff != "" {
		t.Error(diff)
	}
	for _, client := range profile.Names() {
		all, _ := belongings(t, client, true, nil, files)
		for path, settings := range all.Settings {
			if text := cmp.Diff(nil, any(settings)); strings.Contains(text, `"TOKEN"`) || strings.Contains(text, "Bearer") || strings.Contains(text, `"litterbox"`) {
				t.Errorf("%s of %s holds a key, or litterbox's own: %s", path, client, text)
			}
		}
	}
}

// The rules that litterbox has written for a client outside stay there.
func TestBringNoRules(t *testing.T) {
	got, _ := belongings(t, "claude", false, nil, map[string]string{
		".claude/CLAUDE.md": "Mine.\n\n<!-- litterbox:begin -->\n" + agents.Rules + "<!-- litterbox:end -->\n",
	})
	if len(got.Files) != 1 || string(got.Files[0].Content) != "Mine.\n" {
		t.Errorf("%s", pathsOf(got))
	}
	got, _ = belongings(t, "claude", false, nil, map[string]string{
		".claude/CLAUDE.md": "<!-- litterbox:begin -->\n" + agents.Rules + "<!-- litterbox:end -->\n",
	})
	if len(got.Files) != 0 {
		t.Errorf("%s", pathsOf(got))
	}
}

// Files are where the clients' variables say, and may be links; anything that is
// not a file, cannot be understood or is too large stays outside and is named.
func TestBringFromElsewhere(t *testing.T) {
	moved := map[string]string{"CLAUDE_CONFIG_DIR": "elsewhere", "CODEX_HOME": "there", "XDG_CONFIG_HOME": "xdg"}
	files := map[string]string{
		"elsewhere/CLAUDE.md": "a", "elsewhere/settings.json": `{"model": "opus"}`, "elsewhere/.claude.json": `{"theme": "light"}`,
		"there/AGENTS.md": "b", "xdg/opencode/AGENTS.md": "c", ".claude/CLAUDE.md": "not this",
	}
	for client, want := range map[string]string{"claude": ".claude/CLAUDE.md a", "codex": ".codex/AGENTS.md b", "opencode": ".config/opencode/AGENTS.md c"} {
		got, _ := belongings(t, client, false, moved, files)
		if len(got.Files) != 1 || got.Files[0].Path+" "+string(got.Files[0].Content) != want {
			t.Errorf("%s: %s, want %q", client, pathsOf(got), want)
		}
		if client == "claude" && (got.Settings[".claude/settings.json"]["model"] != "opus" || got.Settings[".claude.json"]["theme"] != "light") {
			t.Errorf("%v", got.Settings)
		}
	}

	home := t.TempDir()
	put := func(name, content string) {
		if err := os.MkdirAll(filepath.Join(home, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(home, name), []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	put("dotfiles/CLAUDE.md", "linked")
	put("dotfiles/rules/one.md", "one")
	put(".claude/keybindings.json", strings.Repeat("x", 2<<20))
	put(".claude/settings.json", `{"model": `)
	for at, to := range map[string]string{".claude/CLAUDE.md": "dotfiles/CLAUDE.md", ".claude/rules": "dotfiles/rules"} {
		if err := os.Symlink(filepath.Join(home, to), filepath.Join(home, at)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(home, ".claude.json"), 0o600); err != nil {
		t.Fatal(err)
	}
	claude, _ := profile.ByName("claude")
	got := agents.Host{Home: home, Env: func(string) string { return "" }}.Bring(claude.Belongings, false)
	want := []agents.BroughtFile{{Path: ".claude/CLAUDE.md", Content: []byte("linked"), Program: true}, {Path: ".claude/rules/one.md", Content: []byte("one"), Program: true}}
	if diff := cmp.Diff(want, got.Files); diff != "" {
		t.Error(diff)
	}
	for _, path := range []string{".claude/keybindings.json", ".claude/settings.json", ".claude.json"} {
		if !slices.ContainsFunc(got.Notes, func(note string) bool { return strings.HasPrefix(note, "~/"+path+" stays outside: ") }) {
			t.Errorf("nothing is said of %s: %q", path, got.Notes)
		}
	}
}
