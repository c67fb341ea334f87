package profile

// codex is Codex: developers.openai.com/codex, "Non-interactive mode" and
// "Configuration". Its own sandbox needs operations that are denied inside, so it
// is told that there is one already.
func codex() Profile {
	common := func(t Task) []string {
		args := []string{"--dangerously-bypass-approvals-and-sandbox"}
		args = append(args, optional("-m", t.Model)...)
		for _, pair := range []string{"check_for_update_on_startup=false", "analytics.enabled=false"} {
			args = append(args, "-c", pair)
		}
		if t.Exclusive {
			args = append(args, "-c", "features.shell_tool=true", "-c", "mcp_servers.litterbox.enabled=false")
		}
		return args
	}
	last := func(t Task) []string {
		if t.Session != "" {
			return []string{"resume", t.Session}
		}
		return []string{"resume", "--last"}
	}
	return Profile{
		Name: "codex", Title: "Codex", Programs: []string{"codex"},
		Package: "@openai/codex", Binaries: []string{"node_modules/.bin/codex"},
		Preset: "preset:codex",
		Passed: []string{"OPENAI_BASE_URL"},
		Quiet:  []string{"api.github.com", "github.com", "registry.npmjs.org", "*.statsig.com", "*.sentry.io", "ab.chatgpt.com", "*.oaistatic.com", "*.oaiusercontent.com", "persistent.oaistatic.com"},
		// Apps and plugins of the account, for which its token is not lent inside,
		// websockets, instead of which it sends plain requests where cost is counted,
		// and the account's models, which it asks for with a key as well.
		QuietAt: []Quiet{
			{"chatgpt.com/backend-api/ps/", notLent}, {"chatgpt.com/backend-api/plugins/", notLent}, {"chatgpt.com/backend-api/codex/models", notLent},
			{"chatgpt.com/backend-api/codex/responses", noWebsocket}, {"api.openai.com/v1/responses", noWebsocket},
		},
		Keys: []Key{
			{Variable: "CODEX_API_KEY", Hosts: []string{"api.openai.com"}},
			{Variable: "OPENAI_API_KEY", Hosts: []string{"api.openai.com"}},
		},
		Files: func(p Place) []File {
			return []File{{Path: ".codex/config.toml", Merge: map[string]any{
				"check_for_update_on_startup": false, "cli_auth_credentials_store": "file", "analytics": map[string]any{"enabled": false},
				"projects": map[string]any{p.Project: map[string]any{"trust_level": "trusted"}},
			}}}
		},
		Belongings: codexBelongings(),
		Headless: func(t Task) []string {
			args := append([]string{"exec"}, common(t)...)
			args = append(args, "--json", "--skip-git-repo-check")
			args = append(args, t.Extra...)
			if t.Resume {
				args = append(args, last(t)...)
			}
			return append(args, "-")
		},
		Screen: func(t Task) []string {
			var args []string
			if t.Resume {
				args = last(t)
			}
			args = append(append(args, common(t)...), t.Extra...)
			if t.Prompt != "" {
				args = append(args, t.Prompt)
			}
			return args
		},
		NewRead: func() Reader { return &codexReader{} },
	}
}

// codexReader reads `exec --json`. It exits with 0 after a failed turn, so the
// stream decides.
type codexReader struct {
	text string // the model's last text
}

func (r *codexReader) Read(line []byte) []Event {
	var m struct {
		Type     string `json:"type"`
		ThreadID string `json:"thread_id"`
		Message  string `json:"message"`
		Item     struct {
			Type     string `json:"type"`
			Text     string `json:"text"`
			Message  string `json:"message"`
			Command  string `json:"command"`
			Output   string `json:"aggregated_output"`
			ExitCode *int   `json:"exit_code"`
			Status   string `json:"status"`
			Server   string `json:"server"`
			Tool     string `json:"tool"`
			Query    string `json:"query"`
			Changes  []struct {
				Path string `json:"path"`
			} `json:"changes"`
		} `json:"item"`
		Usage struct {
			In     int64 `json:"input_tokens"`
			Cached int64 `json:"cached_input_tokens"`
			Out    int64 `json:"output_tokens"`
		} `json:"usage"`
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if !decode(line, &m) {
		return raw(line)
	}
	failed := m.Item.Status == "failed" || m.Item.Status == "declined" || m.Item.ExitCode != nil && *m.Item.ExitCode != 0
	switch m.Type {
	case "thread.started":
		return []Event{{Kind: Begin, Session: m.ThreadID}}
	case "item.started":
		if m.Item.Type == "command_execution" {
			return []Event{{Kind: Command, Tool: "shell", Text: m.Item.Command}}
		}
	case "item.completed":
		switch m.Item.Type {
		case "agent_message":
			r.text = m.Item.Text
			return []Event{{Kind: Text, Text: m.Item.Text}}
		case "reasoning":
			return []Event{{Kind: Thought, Text: m.Item.Text}}
		case "command_execution":
			return []Event{{Kind: Output, Text: m.Item.Output, Failed: failed}}
		case "file_change":
			var events []Event
			for _, change := range m.Item.Changes {
				events = append(events, Event{Kind: Edit, Tool: "patch", Path: change.Path, Failed: failed})
			}
			return events
		case "mcp_tool_call":
			return []Event{{Kind: Tool, Tool: m.Item.Server + "." + m.Item.Tool, Failed: failed}}
		case "web_search":
			return []Event{{Kind: Tool, Tool: "web search", Text: m.Item.Query}}
		case "error":
			return []Event{{Kind: Warning, Text: m.Item.Message}}
		}
	case "turn.completed":
		// Its input count includes the cached part.
		return []Event{
			{Kind: Usage, Usage: Tokens{In: max(0, m.Usage.In-m.Usage.Cached), Cached: m.Usage.Cached, Out: m.Usage.Out}},
			{Kind: Result, Text: r.text},
		}
	case "turn.failed":
		return []Event{{Kind: Result, Text: m.Error.Message, Failed: true}}
	case "error":
		return []Event{{Kind: Warning, Text: m.Message}}
	}
	return nil
}
