package profile

// opencode is OpenCode: opencode.ai/docs, "CLI", "Config" and "Permissions".
func opencode() Profile {
	start := func(t Task, args ...string) []string {
		args = append(args, optional("--model", t.Model)...)
		switch {
		case t.Session != "":
			args = append(args, "--session", t.Session)
		case t.Resume:
			args = append(args, "--continue")
		}
		return append(args, t.Extra...)
	}
	return Profile{
		Name: "opencode", Title: "OpenCode", Programs: []string{"opencode"},
		Package:  "opencode-ai",
		Binaries: []string{"node_modules/opencode-linux-{arch}/bin/opencode", "node_modules/opencode-linux-{arch}-baseline/bin/opencode", "node_modules/.bin/opencode"},
		Preset:   "preset:opencode",
		Quiet:    []string{"api.github.com", "github.com", "registry.npmjs.org", "opncd.ai", "api.opencode.ai", "us.i.posthog.com"},
		Several:  true,
		Keys: []Key{
			{Variable: "ANTHROPIC_API_KEY", Hosts: []string{"api.anthropic.com"}},
			{Variable: "OPENAI_API_KEY", Hosts: []string{"api.openai.com"}},
			{Variable: "GEMINI_API_KEY", Hosts: []string{"generativelanguage.googleapis.com"}},
			{Variable: "OPENROUTER_API_KEY", Hosts: []string{"openrouter.ai"}},
		},
		Env: []string{
			"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1", "OPENCODE_DISABLE_SHARE=1",
			// It counts above the project's own file, which may have litterbox's
			// server and permissions for a client outside.
			`OPENCODE_CONFIG_CONTENT={"permission":{"bash":"allow","edit":"allow","webfetch":"allow","external_directory":"allow"},"mcp":{"litterbox":{"type":"local","command":["litterbox","mcp"],"enabled":false}},"autoupdate":false,"share":"disabled"}`,
		},
		Files:      func(Place) []File { return nil },
		Belongings: opencodeBelongings(),
		Headless:   func(t Task) []string { return start(t, "run", "--format", "json") },
		Screen: func(t Task) []string {
			args := start(t)
			return append(args, optional("--prompt", t.Prompt)...)
		},
		NewRead: func() Reader { return &opencodeReader{} },
	}
}

// opencodeReader reads `run --format json`. It has no event for the end: the
// last step's reason is the outcome.
type opencodeReader struct {
	began bool
	text  string
}

func (r *opencodeReader) Read(line []byte) []Event {
	var m struct {
		Type      string `json:"type"`
		SessionID string `json:"sessionID"`
		Part      struct {
			Text   string  `json:"text"`
			Tool   string  `json:"tool"`
			Reason string  `json:"reason"`
			Cost   float64 `json:"cost"`
			Tokens struct {
				In    int64 `json:"input"`
				Out   int64 `json:"output"`
				Cache struct {
					Read int64 `json:"read"`
				} `json:"cache"`
			} `json:"tokens"`
			State struct {
				Status string         `json:"status"`
				Input  map[string]any `json:"input"`
				Output string         `json:"output"`
				Error  string         `json:"error"`
			} `json:"state"`
		} `json:"part"`
		Error struct {
			Name string `json:"name"`
			Data struct {
				Message string `json:"message"`
			} `json:"data"`
		} `json:"error"`
	}
	if !decode(line, &m) {
		return raw(line)
	}
	var events []Event
	if !r.began && m.SessionID != "" {
		r.began = true
		events = append(events, Event{Kind: Begin, Session: m.SessionID})
	}
	switch m.Type {
	case "text":
		r.text = m.Part.Text
		events = append(events, Event{Kind: Text, Text: m.Part.Text})
	case "reasoning":
		events = append(events, Event{Kind: Thought, Text: m.Part.Text})
	case "tool_use":
		state := m.Part.State
		failed := state.Status == "error"
		switch m.Part.Tool {
		case "bash":
			events = append(events, Event{Kind: Command, Tool: "bash", Text: str(state.Input, "command"), About: str(state.Input, "description")})
		case "write", "edit", "patch":
			events = append(events, Event{Kind: Edit, Tool: m.Part.Tool, Path: str(state.Input, "filePath"), Failed: failed})
		default:
			events = append(events, Event{Kind: Tool, Tool: m.Part.Tool, Text: brief(state.Input), Failed: failed})
		}
		if text := first(state.Output, state.Error); text != "" {
			events = append(events, Event{Kind: Output, Text: text, Failed: failed})
		}
	case "step_finish":
		events = append(events, Event{Kind: Usage, Usage: Tokens{In: m.Part.Tokens.In, Cached: m.Part.Tokens.Cache.Read, Out: m.Part.Tokens.Out}, CostUSD: m.Part.Cost})
		if m.Part.Reason == "stop" {
			events = append(events, Event{Kind: Result, Text: r.text})
		}
	case "error":
		events = append(events, Event{Kind: Result, Text: first(m.Error.Data.Message, m.Error.Name), Failed: true})
	}
	return events
}
