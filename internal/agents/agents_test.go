package agents_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/agents"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// machine is a host with a repository, in directories of the test's own.
type machine struct {
	*testing.T
	agents.Host
	dir, repo string
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	dir := t.TempDir()
	m := &machine{T: t, dir: dir, repo: filepath.Join(dir, "repo")}
	m.Host = agents.Host{
		Home: filepath.Join(dir, "home"), State: filepath.Join(dir, "state"), System: "linux", Self: "/opt/litterbox",
		Env:  func(string) string { return "" },
		Find: func(program string) (string, error) { return "", errors.New("not there") },
	}
	for _, made := range []string{m.Home, filepath.Join(m.repo, ".git")} {
		if err := os.MkdirAll(made, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// files are all files and directories of the home and the repository, with
// their modes.
func (m *machine) files() map[string]string {
	m.Helper()
	all := map[string]string{}
	for _, top := range []string{"home", "repo"} {
		err := filepath.WalkDir(filepath.Join(m.dir, top), func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			name, _ := filepath.Rel(m.dir, path)
			info, err := entry.Info()
			if err != nil {
				return err
			}
			all[name] = info.Mode().String()
			if info.Mode().IsRegular() {
				content, err := os.ReadFile(path)
				all[name] += " " + string(content)
				return err
			}
			return nil
		})
		if err != nil {
			m.Fatal(err)
		}
	}
	return all
}

func (m *machine) put(name, content string) {
	m.Helper()
	path := filepath.Join(m.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		m.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o640); err != nil {
		m.Fatal(err)
	}
}

func (m *machine) get(name string) string {
	m.Helper()
	content, err := os.ReadFile(filepath.Join(m.dir, name))
	if err != nil {
		m.Fatal(err)
	}
	return string(content)
}

func (m *machine) install(r agents.Request, names ...string) agents.Result {
	m.Helper()
	r.Repository, r.Names = m.repo, names
	result, err := m.Install(m.Context(), r)
	if err != nil {
		m.Fatal(err)
	}
	return result
}

func (m *machine) uninstall(r agents.Request, names ...string) agents.Result {
	m.Helper()
	r.Repository, r.Names = m.repo, names
	result, err := m.Uninstall(m.Context(), r)
	if err != nil {
		m.Fatal(err)
	}
	return result
}

// fails installs, which must fail with a kind and change nothing.
func (m *machine) fails(kind fault.Kind, says string, r agents.Request, names ...string) {
	m.Helper()
	r.Repository, r.Names = m.repo, names
	before := m.files()
	_, err := m.Install(m.Context(), r)
	if fault.KindOf(err) != kind || !strings.Contains(err.Error(), says) || fault.HintOf(err) == "" {
		m.Errorf("%v fails with %q, hint %q", names, err, fault.HintOf(err))
	}
	m.same(before)
}

func (m *machine) same(before map[string]string) {
	m.Helper()
	if diff := cmp.Diff(before, m.files()); diff != "" {
		m.Errorf("the files are not what they were (-want +got):\n%s", diff)
	}
}

// paths are where each client has its settings, by its documentation.
var paths = map[string]map[agents.Scope][]string{
	"claude": {
		agents.Project: {"repo/.mcp.json", "repo/.claude/settings.json", "repo/CLAUDE.md"},
		agents.User:    {"home/.claude.json", "home/.claude/settings.json", "home/.claude/CLAUDE.md"},
	},
	"codex": {
		agents.Project: {"repo/.codex/config.toml", "repo/AGENTS.md"},
		agents.User:    {"home/.codex/config.toml", "home/.codex/AGENTS.md"},
	},
	"cursor": {agents.Project: {"repo/.cursor/mcp.json", "repo/AGENTS.md"}, agents.User: {"home/.cursor/mcp.json"}},
	"vscode": {agents.Project: {"repo/.vscode/mcp.json", "repo/AGENTS.md"}, agents.User: {"home/.config/Code/User/mcp.json"}},
	"gemini": {
		agents.Project: {"repo/.gemini/settings.json", "repo/GEMINI.md"},
		agents.User:    {"home/.gemini/settings.json", "home/.gemini/GEMINI.md"},
	},
	"opencode": {
		agents.Project: {"repo/opencode.json", "repo/AGENTS.md"},
		agents.User:    {"home/.config/opencode/opencode.json", "home/.config/opencode/AGENTS.md"},
	},
	"goose": {agents.User: {"home/.config/goose/config.yaml", "home/.config/goose/.goosehints"}},
}

// exclusive tells which clients have permissions in a file.
var exclusive = map[string]bool{"claude": true, "codex": true, "gemini": true, "opencode": true}

// layouts are files that people have, by the end of their names.
var layouts = map[string][]string{
	".json": {
		"{}", "{}\n", "{ }", "{\n}\n", "// mine\n{\n  // nothing yet\n}\n",
		`{"mcpServers":{},"servers":{},"mcp":{},"permissions":{"deny":[]},"permission":{},"tools":{"exclude":[]}}`,
		"{\n  \"mcpServers\": {\n    \"other\": { \"command\": \"x\" } // why\n  },\n  \"servers\": {},\n  \"permissions\": {\n    \"deny\": [\n      \"Bash\"\n    ],\n    \"allow\": [ \"Read\" ]\n  }\n}",
		"\xef\xbb\xbf{\r\n\t\"mcp\": {\r\n\t\t\"other\": {\"type\": \"remote\"},\r\n\t},\r\n\t\"tools\": {\"exclude\": [\"write_file\"]},\r\n\t\"permission\": {\"bash\": \"deny\"},\r\n}\r\n",
	},
	".toml": {"", "# nothing\n", "model = \"m\"\n[mcp_servers.other]\ncommand = \"x\"  # why\n\n\n[features] # last\nx = true", "a = 1\r\n\r\n[b]\r\nc = [\r\n 1,\r\n]\r\n", "sandbox_mode = 'read-only'\n"},
	".yaml": {"", "# nothing\n", "extensions:\n    developer:\n        enabled: true\n        type: builtin\nGOOSE_MODE: auto", "extensions: {}\r\nA: |\r\n  b\r\n", "---\nextensions:\n# end\n"},
	".md":   {"", "# Mine", "# Mine\n", "# Mine\r\n\r\n- one\r\n\r\n"},
}

// Every client, in both scopes, with and without its permissions and rules, into
// nothing and into existing files: installed twice, listed, and taken out to the
// byte.
func TestRoundTrip(t *testing.T) {
	for name, scopes := range paths {
		for scope, files := range scopes {
			for variant := range 8 { // of layouts
				r := agents.Request{Scope: scope, Exclusive: exclusive[name], Rules: len(files) > 1}
				m := newMachine(t)
				if variant > 0 {
					for _, file := range files {
						choices := layouts[".md"]
						if all, ok := layouts[filepath.Ext(file)]; ok {
							choices = all
						}
						m.put(file, choices[variant%len(choices)])
					}
				}
				before := m.files()
				r.Print = true
				if planned := m.install(r, name); len(planned.Changes) < len(files)-1 {
					t.Errorf("%s %s: %+v", name, scope, planned)
				}
				m.same(before)
				r.Print = false
				m.install(agents.Request{Scope: scope}, name)
				m.install(r, name)
				after := m.files()
				for _, change := range m.install(r, name).Changes {
					if change.Action != agents.Unchanged {
						t.Errorf("%s %s: the second time: %+v", name, scope, change)
					}
				}
				m.same(after)
				m.listed(name, scope, r)
				if t.Failed() {
					t.Fatalf("%s %s, variant %d: %q", name, scope, variant, after)
				}
				m.uninstall(agents.Request{Scope: scope}, name)
				m.same(before)
				m.uninstall(agents.Request{Scope: scope}, name)
				m.same(before)
				if t.Failed() {
					t.Fatalf("%s %s, variant %d", name, scope, variant)
				}
			}
		}
	}
}

func (m *machine) listed(name string, scope agents.Scope, r agents.Request) {
	m.Helper()
	for _, s := range m.List(m.repo) {
		if s.Agent != name {
			continue
		}
		file := paths[name][scope][0]
		if scope == agents.User {
			file = filepath.Join(m.dir, file)
		}
		want := []agents.Installed{{Scope: scope, File: strings.TrimPrefix(file, "repo/"), State: agents.StateInstalled, Exclusive: r.Exclusive, Rules: r.Rules}}
		if diff := cmp.Diff(want, s.Installed); diff != "" {
			m.Errorf("listed (-want +got):\n%s", diff)
		}
	}
}

// Without a record, as in a colleague's clone, and after changes by others,
// litterbox's parts go and the rest stays.
func TestUninstallFromChangedFiles(t *testing.T) {
	m := newMachine(t)
	all := agents.Request{Exclusive: true, Rules: true}
	names := []string{"claude", "codex", "gemini", "opencode"}
	before := m.files()
	m.install(all, names...)
	if err := os.RemoveAll(m.State); err != nil {
		t.Fatal(err)
	}
	m.uninstall(agents.Request{}, names...)
	// Who made the directories is no longer known.
	for _, dir := range []string{".claude", ".codex", ".gemini/policies", ".gemini"} {
		if err := os.Remove(filepath.Join(m.repo, dir)); err != nil {
			t.Errorf("%s: %v", dir, err)
		}
	}
	m.same(before)

	m.put("repo/.claude/settings.json", "{\n  \"permissions\": {\n    \"deny\": [\"Bash\"]\n  }\n}\n")
	m.install(all, "claude")
	text := strings.Replace(m.get("repo/.claude/settings.json"), "{\n", "{\n  \"model\": \"m\",\n", 1)
	m.put("repo/.claude/settings.json", text)
	m.put("repo/.mcp.json", strings.Replace(m.get("repo/.mcp.json"), "\"mcpServers\": {\n", "\"mcpServers\": {\n    \"other\": {},\n", 1))
	m.put("repo/CLAUDE.md", "# First\n\n"+m.get("repo/CLAUDE.md")+"Last\n")
	m.uninstall(agents.Request{}, "claude")
	got := map[string]string{}
	for _, name := range []string{".claude/settings.json", ".mcp.json", "CLAUDE.md"} {
		got[name] = m.get("repo/" + name)
	}
	want := map[string]string{
		".claude/settings.json": "{\n  \"model\": \"m\",\n  \"permissions\": {\n    \"deny\": [\"Bash\"]\n  }\n}\n",
		".mcp.json":             "{\n  \"mcpServers\": {\n    \"other\": {}\n  }\n}\n",
		"CLAUDE.md":             "# First\nLast\n",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Rules that several clients read stay until the last one goes.
func TestSharedRules(t *testing.T) {
	m := newMachine(t)
	before := m.files()
	m.install(agents.Request{Rules: true}, "codex", "opencode", "cursor")
	once := m.get("repo/AGENTS.md")
	m.uninstall(agents.Request{}, "codex")
	m.uninstall(agents.Request{}, "cursor")
	if got := m.get("repo/AGENTS.md"); got != once || strings.Count(got, "litterbox:begin") != 1 {
		t.Errorf("%q", got)
	}
	m.uninstall(agents.Request{}, "opencode")
	m.same(before)
}

// Others' entries are replaced only on request, and come back.
func TestWhatOthersWrote(t *testing.T) {
	m := newMachine(t)
	for name, content := range map[string]string{
		"repo/.mcp.json":                 `{"mcpServers":{"litterbox":{"command":"other"}}}`,
		"repo/.codex/config.toml":        "[mcp_servers.litterbox]\ncommand = \"litterbox\"\nargs = [\"mcp\", \"--answer-within\", \"9s\"]\n",
		"home/.config/goose/config.yaml": "extensions:\n  litterbox:\n    enabled: false\n",
	} {
		m.put(name, content)
	}
	for _, name := range []string{"claude", "codex", "goose"} {
		m.fails(fault.AlreadyExists, "holds another entry", agents.Request{}, name)
		before := m.files()
		if _, err := m.Uninstall(t.Context(), agents.Request{Repository: m.repo, Names: []string{name}}); fault.KindOf(err) != fault.AlreadyExists {
			t.Errorf("uninstall %s: %v", name, err)
		}
		m.same(before)
		if name == "codex" {
			continue // a section is replaced as a whole only by hand
		}
		m.install(agents.Request{Force: true}, name)
		m.uninstall(agents.Request{}, name)
		m.same(before)
	}
	m.put("repo/opencode.jsonc", "{\n  // mine\n  \"permission\": {\"bash\": {\"git *\": \"allow\"}}\n}\n")
	m.fails(fault.Conflict, "permission.bash", agents.Request{Exclusive: true}, "opencode")
	before := m.files()
	m.install(agents.Request{Exclusive: true, Force: true}, "opencode")
	if got := m.get("repo/opencode.jsonc"); !strings.Contains(got, `"bash": "deny"`) || !strings.Contains(got, "// mine") {
		t.Errorf("%s", got)
	}
	m.uninstall(agents.Request{}, "opencode")
	m.same(before)
	// OpenCode would add $schema by itself; uninstall takes out the one that
	// install wrote, and leaves an earlier one.
	m.put("repo/opencode.jsonc", "{}\n")
	m.install(agents.Request{}, "opencode")
	if got := m.get("repo/opencode.jsonc"); !strings.Contains(got, `"$schema": "https://opencode.ai/config.json"`) {
		t.Errorf("%s", got)
	}
	m.uninstall(agents.Request{}, "opencode")
	if got := m.get("repo/opencode.jsonc"); got != "{}\n" {
		t.Errorf("%q", got)
	}
	m.put("repo/opencode.jsonc", "{\"$schema\": \"mine\"}\n")
	m.install(agents.Request{}, "opencode")
	m.uninstall(agents.Request{}, "opencode")
	if got := m.get("repo/opencode.jsonc"); got != "{\"$schema\": \"mine\"}\n" {
		t.Errorf("%q", got)
	}
	// A policy of that name that litterbox did not write stays.
	m.put("repo/.gemini/policies/litterbox.toml", "# mine\n")
	m.fails(fault.Conflict, "holds something else", agents.Request{Exclusive: true}, "gemini")
	before = m.files()
	m.install(agents.Request{Exclusive: true, Force: true}, "gemini")
	m.uninstall(agents.Request{}, "gemini")
	m.same(before)
	// An entry of litterbox's own with another path is brought up to date.
	m.put("home/.cursor/mcp.json", `{"mcpServers":{"litterbox":{"type":"stdio","command":"/old/litterbox","args":["-C","${workspaceFolder}","mcp"]}}}`)
	m.install(agents.Request{Scope: agents.User}, "cursor")
	if got := m.get("home/.cursor/mcp.json"); !strings.Contains(got, `"command":"/opt/litterbox"`) {
		t.Errorf("%s", got)
	}
}

func TestWhatIsNotPossible(t *testing.T) {
	m := newMachine(t)
	for _, name := range []string{"cursor", "vscode", "goose"} {
		m.fails(fault.Unsupported, "nothing was written", agents.Request{Exclusive: true}, name)
	}
	m.fails(fault.Unsupported, "Goose has no settings for a project", agents.Request{Scope: agents.Project}, "goose")
	m.fails(fault.Unsupported, "VS Code reads no file with rules", agents.Request{Scope: agents.User, Rules: true}, "vscode")
	m.fails(fault.Unsupported, "nothing was written", agents.Request{Exclusive: true}, "claude", "goose")
	m.fails(fault.NotFound, "none of the agents", agents.Request{All: true})
	m.fails(fault.Invalid, `there is no agent "cluade"`, agents.Request{}, "cluade")
	m.put("repo/.mcp.json", "{\n  \"mcpServers\": {\n    oops\n  }\n}\n")
	m.fails(fault.Invalid, "cannot understand .mcp.json: line 3, column 5", agents.Request{}, "codex", "claude")
	m.put("repo/CLAUDE.md", "<!-- litterbox:end -->\n")
	m.put("repo/.mcp.json", "{}")
	m.fails(fault.Conflict, "do not enclose one text", agents.Request{Rules: true}, "claude")
	outside := agents.Request{Names: []string{"claude"}, Scope: agents.Project}
	if _, err := m.Install(t.Context(), outside); fault.KindOf(err) != fault.NotFound {
		t.Errorf("outside of a repository: %v", err)
	}

	// With --all the possible clients are done all the same.
	for _, dir := range []string{".cursor", ".gemini"} {
		if err := os.Mkdir(filepath.Join(m.Home, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	result, err := m.Install(t.Context(), agents.Request{Repository: m.repo, All: true, Exclusive: true})
	if fault.KindOf(err) != fault.Unsupported || len(result.Changes) != 2 || result.Changes[0].Agent != "gemini" || result.Changes[1].Agent != "gemini" {
		t.Errorf("%+v, %v", result, err)
	}
}
