package profile

// claude is Claude Code: code.claude.com/docs, "CLI reference", "Settings" and
// "Environment variables".
func claude() Profile {
	start := func(t Task, args ...string) []string {
		args = append(args, "--dangerously-skip-permissions")
		args = append(args, optional("--model", t.Model)...)
		switch {
		case t.Session != "":
			args = append(args, "--resume", t.Session)
		case t.Resume:
			args = append(args, "--continue")
		}
		if t.Exclusive {
			args = append(args, "--setting-sources", "user,local")
			args = append(args, optional("--settings", t.Settings)...)
		}
		return append(args, t.Extra...)
	}
	return Profile{
		Name: "claude", Title: "Claude Code", Programs: []string{"claude"},
		Package:  "@anthropic-ai/claude-code",
		Binaries: []string{"node_modules/@anthropic-ai/claude-code-linux-{arch}/claude", "node_modules/.bin/claude"},
		Preset:   "preset:claude",
		Passed:   []string{"ANTHROPIC_BASE_URL", "ANTHROPIC_MODEL", "ANTHROPIC_SMALL_FAST_MODEL", "ANTHROPIC_DEFAULT_HAIKU_MODEL", "ANTHROPIC_DEFAULT_SONNET_MODEL", "ANTHROPIC_DEFAULT_OPUS_MODEL"},
		Quiet:    []string{"statsig.anthropic.com", "statsig.com", "*.statsig.com", "sentry.io", "*.sentry.io", "*.datadoghq.com", "downloads.claude.ai", "storage.googleapis.com", "registry.npmjs.org", "mcp-proxy.anthropic.com", "raw.githubusercontent.com", "api.segment.io"},
		Keys: []Key{
			{Variable: "ANTHROPIC_API_KEY", Hosts: []string{"api.anthropic.com"}},
			{Variable: "CLAUDE_CODE_OAUTH_TOKEN", Hosts: []string{"api.anthropic.com"}},
			{Variable: "ANTHROPIC_AUTH_TOKEN", Hosts: []string{"api.anthropic.com"}},
		},
		Env: []string{
			"IS_SANDBOX=1", // as root it skips its questions only in a sandbox
			"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1",
		},
		Files: func(p Place) []File {
			state := map[string]any{
				"hasCompletedOnboarding": true, "bypassPermissionsModeAccepted": true, "theme": "dark",
				"projects": map[string]any{p.Project: map[string]any{"hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true}},
			}
			if p.KeyTail != "" {
				state["customApiKeyResponses"] = map[string]any{"approved": []any{p.KeyTail}, "rejected": []any{}}
			}
			return []File{
				{Path: ".claude.json", Merge: state},
				{Path: ".claude/settings.json", Force: true, Merge: map[string]any{
					"skipDangerousModePermissionPrompt": true,
					"disabledMcpjsonServers":            []any{"litterbox"}, // one that would make sandboxes inside of this one
				}},
			}
		},
		Belongings: claudeBelongings(),
		Headless:   func(t Task) []string { return start(t, "-p", "--output-format", "stream-json", "--verbose") },
		Screen: func(t Task) []string {
			args := start(t)
			if t.Prompt != "" {
				args = append(args, t.Prompt)
			}
			return args
		},
		// With --include-partial-messages.
		Pieces: []PieceOf{
			{Is: [][2]string{{"type", "stream_event"}}, Text: []string{"event", "delta", "text"}},
			{Is: [][2]string{{"type", "stream_event"}}, Text: []string{"event", "delta", "partial_json"}},
			{Is: [][2]string{{"type", "stream_event"}}, Text: []string{"event", "delta", "thinking"}},
		},
		NewRead: func() Reader { return &claudeReader{} },
	}
}

// claudeReader reads `--output-format stream-json`.
type claudeReader struct{}

func (r *claudeReader) Read(line []byte) []Event {
	var m struct {
		Type      string `json:"type"`
		Subtype   string `json:"subtype"`
		SessionID string `json:"session_id"`
		Model     string `json:"model"`
		Version   string `json:"claude_code_version"`
		Message   struct {
			Content flexible `json:"content"`
		} `json:"message"`
		IsError bool    `json:"is_error"`
		Result  string  `json:"result"`
		Cost    float64 `json:"total_cost_usd"`
		Usage   struct {
			In      int64 `json:"input_tokens"`
			Out     int64 `json:"output_tokens"`
			Read    int64 `json:"cache_read_input_tokens"`
			Written int64 `json:"cache_creation_input_tokens"`
		} `json:"usage"`
	}
	if !decode(line, &m) {
		return raw(line)
	}
	var events []Event
	switch m.Type {
	case "system":
		if m.Subtype == "init" {
			events = append(events, Event{Kind: Begin, Session: m.SessionID, Model: m.Model, Version: m.Version})
		}
	case "assistant":
		for _, block := range m.Message.Content.blocks() {
			switch block.Type {
			case "text":
				events = append(events, Event{Kind: Text, Text: block.Text})
			case "thinking":
				events = append(events, Event{Kind: Thought, Text: block.Thinking})
			case "tool_use":
				events = append(events, claudeTool(block.Name, block.Input))
			}
		}
	case "user":
		for _, block := range m.Message.Content.blocks() {
			if block.Type == "tool_result" {
				events = append(events, Event{Kind: Output, Text: block.Content.text(), Failed: block.IsError})
			}
		}
	case "result":
		events = append(events,
			Event{Kind: Usage, Usage: Tokens{In: m.Usage.In + m.Usage.Written, Cached: m.Usage.Read, Out: m.Usage.Out}, CostUSD: m.Cost},
			Event{Kind: Result, Text: m.Result, Failed: m.IsError || m.Subtype != "success", Session: m.SessionID})
	}
	return events
}

func claudeTool(name string, input map[string]any) Event {
	switch name {
	case "Bash":
		return Event{Kind: Command, Tool: name, Text: str(input, "command"), About: str(input, "description")}
	case "Edit", "Write", "MultiEdit", "NotebookEdit":
		return Event{Kind: Edit, Tool: name, Path: first(str(input, "file_path"), str(input, "notebook_path"))}
	}
	return Event{Kind: Tool, Tool: name, Text: brief(input)}
}
