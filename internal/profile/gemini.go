package profile

// gemini is Gemini CLI: geminicli.com/docs, "Headless mode" and
// "Configuration".
func gemini() Profile {
	start := func(t Task, args ...string) []string {
		args = append(args, "--approval-mode", "yolo", "--skip-trust")
		args = append(args, optional("-m", t.Model)...)
		switch {
		case t.Session != "":
			args = append(args, "--resume", t.Session)
		case t.Resume:
			args = append(args, "--resume", "latest")
		}
		if t.Exclusive {
			// No MCP server has this name: none is started.
			args = append(args, "--allowed-mcp-server-names", "none")
		}
		return append(args, t.Extra...)
	}
	return Profile{
		Name: "gemini", Title: "Gemini CLI", Programs: []string{"gemini"},
		Package: "@google/gemini-cli", Binaries: []string{"node_modules/.bin/gemini"},
		Preset: "preset:gemini", Bound: true,
		Passed: []string{"GOOGLE_GEMINI_BASE_URL", "GEMINI_MODEL"},
		Quiet:  []string{"www.googleapis.com", "play.googleapis.com", "registry.npmjs.org", "github.com", "api.github.com", "clearcut.googleapis.com"},
		Keys: []Key{
			{Variable: "GEMINI_API_KEY", Hosts: []string{"generativelanguage.googleapis.com"}},
			{Variable: "GOOGLE_API_KEY", Hosts: []string{"generativelanguage.googleapis.com"}},
		},
		Env: []string{"GEMINI_CLI_NO_RELAUNCH=true", "GEMINI_CLI_TRUST_WORKSPACE=true"},
		Files: func(p Place) []File {
			by := "gemini-api-key"
			if p.Login {
				by = "oauth-personal"
			}
			return []File{
				{Path: ".gemini/trustedFolders.json", Merge: map[string]any{p.Project: "TRUST_FOLDER"}},
				{Path: ".gemini/settings.json", Merge: map[string]any{
					"security":  map[string]any{"folderTrust": map[string]any{"enabled": false}},
					"general":   map[string]any{"enableAutoUpdate": false, "disableAutoUpdate": true},
					"privacy":   map[string]any{"usageStatisticsEnabled": false},
					"telemetry": map[string]any{"enabled": false},
					"ui":        map[string]any{"theme": "Default"},
				}},
				{Path: ".gemini/settings.json", Force: true, Merge: map[string]any{"security": map[string]any{"auth": map[string]any{"selectedType": by}}}},
			}
		},
		Belongings: geminiBelongings(),
		Headless:   func(t Task) []string { return start(t, "--output-format", "stream-json") },
		Screen: func(t Task) []string {
			args := start(t)
			if t.Prompt != "" {
				args = append(args, "-i", t.Prompt)
			}
			return args
		},
		Pieces:  []PieceOf{{Is: [][2]string{{"type", "message"}, {"role", "assistant"}}, Text: []string{"content"}}},
		NewRead: func() Reader { return &geminiReader{} },
		Forgets: true, // "No previous sessions found for this project", exit code 42
	}
}

// geminiReader reads `--output-format stream-json`. Text comes in pieces, which
// become one event.
type geminiReader struct {
	said []byte
}

// longestText bounds the text gathered from pieces.
const longestText = 64 << 10

func (r *geminiReader) Read(line []byte) []Event {
	var m struct {
		Type       string         `json:"type"`
		SessionID  string         `json:"session_id"`
		Model      string         `json:"model"`
		Role       string         `json:"role"`
		Content    string         `json:"content"`
		ToolName   string         `json:"tool_name"`
		Parameters map[string]any `json:"parameters"`
		Status     string         `json:"status"`
		Output     string         `json:"output"`
		Message    string         `json:"message"`
		Error      struct {
			Message string `json:"message"`
		} `json:"error"`
		Stats struct {
			In     int64 `json:"input_tokens"`
			Out    int64 `json:"output_tokens"`
			Cached int64 `json:"cached"`
		} `json:"stats"`
	}
	if !decode(line, &m) {
		return raw(line)
	}
	if m.Type == "message" && m.Role == "assistant" {
		r.said = append(r.said, m.Content...)
		r.said = r.said[:min(len(r.said), longestText)]
		return nil
	}
	var events []Event
	text := string(r.said)
	if len(r.said) > 0 {
		events = append(events, Event{Kind: Text, Text: text})
		r.said = nil
	}
	switch m.Type {
	case "init":
		events = append(events, Event{Kind: Begin, Session: m.SessionID, Model: m.Model})
	case "tool_use":
		switch m.ToolName {
		case "run_shell_command":
			events = append(events, Event{Kind: Command, Tool: m.ToolName, Text: str(m.Parameters, "command"), About: str(m.Parameters, "description")})
		case "write_file", "replace":
			events = append(events, Event{Kind: Edit, Tool: m.ToolName, Path: str(m.Parameters, "file_path")})
		default:
			events = append(events, Event{Kind: Tool, Tool: m.ToolName, Text: brief(m.Parameters)})
		}
	case "tool_result":
		events = append(events, Event{Kind: Output, Text: first(m.Output, m.Error.Message), Failed: m.Status == "error"})
	case "error":
		events = append(events, Event{Kind: Warning, Text: m.Message})
	case "result":
		failed := m.Status != "success"
		if failed {
			text = m.Error.Message
		}
		events = append(events,
			Event{Kind: Usage, Usage: Tokens{In: max(0, m.Stats.In-m.Stats.Cached), Cached: m.Stats.Cached, Out: m.Stats.Out}},
			Event{Kind: Result, Text: text, Failed: failed})
	}
	return events
}
