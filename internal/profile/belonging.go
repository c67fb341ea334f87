package profile

// Belonging is something of the human's own that a client of the host reads: a
// file, or a directory with everything below it. A copy of it is at the same
// place below HOME inside.
//
// A setting that runs a program never goes in by default. So the settings that go
// in are named, key by key; an unknown one stays outside.
type Belonging struct {
	Path string // below HOME
	// Moved is the variable that names another directory in the place of the
	// first Levels elements of Path on the host; empty where the client has none.
	Moved  string
	Levels int

	Keys    [][]string // of a settings file: the keys that go in. Without any the whole file goes in unchanged
	Unless  [][]string // with one of these in the file, nothing of it goes in: it refers to things that stay outside
	Without []string   // members that stay outside, at any depth: they hold keys, or are litterbox's

	Runs bool // it runs programs: it goes in only on request
}

// keys are keys at the top of a document.
func keys(names ...string) [][]string {
	var all [][]string
	for _, name := range names {
		all = append(all, []string{name})
	}
	return all
}

// belowHome lists belongings in one directory of the client.
func belowHome(dir, moved string, levels int, all ...Belonging) []Belonging {
	for i := range all {
		all[i].Path, all[i].Moved, all[i].Levels = dir+"/"+all[i].Path, moved, levels
	}
	return all
}

// withKeys are the members of an entry of a server that may hold a token.
var withKeys = []string{"env", "environment", "headers", "http_headers", "oauth", "litterbox"}

// claudeBelongings: code.claude.com/docs, "Settings", "Memory" and "Output
// styles". Permissions stay outside: those of --exclusive are among them.
func claudeBelongings() []Belonging {
	const moved = "CLAUDE_CONFIG_DIR"
	return append(belowHome(".claude", moved, 1,
		Belonging{Path: "CLAUDE.md"},
		Belonging{Path: "rules"},
		Belonging{Path: "output-styles"},
		Belonging{Path: "keybindings.json"},
		Belonging{Path: "settings.json", Keys: keys("model", "language", "outputStyle", "effortLevel", "alwaysThinkingEnabled", "showThinkingSummaries",
			"includeCoAuthoredBy", "attribution", "includeGitInstructions", "spinnerTipsEnabled", "spinnerVerbs", "prefersReducedMotion",
			"respectGitignore", "autoCompactEnabled", "syntaxHighlightingDisabled", "theme", "editorMode", "fastMode")},
		Belonging{Path: "settings.json", Runs: true, Keys: keys("hooks", "statusLine", "subagentStatusLine", "fileSuggestion")},
		Belonging{Path: "hooks", Runs: true},
		Belonging{Path: "commands", Runs: true},
		Belonging{Path: "agents", Runs: true},
		Belonging{Path: "skills", Runs: true},
	),
		Belonging{Path: ".claude.json", Moved: moved, Keys: keys("theme", "editorMode", "verbose")},
		Belonging{Path: ".claude.json", Moved: moved, Runs: true, Keys: keys("mcpServers"), Without: withKeys},
	)
}

// codexBelongings: developers.openai.com/codex, "Configuration Reference". A
// model of another provider than the client's own does not work without it.
func codexBelongings() []Belonging {
	return belowHome(".codex", "CODEX_HOME", 1,
		Belonging{Path: "AGENTS.md"},
		Belonging{Path: "AGENTS.override.md"},
		Belonging{Path: "prompts"},
		Belonging{Path: "config.toml", Keys: keys("model", "review_model"), Unless: keys("model_provider", "openai_base_url", "profile", "oss_provider")},
		Belonging{Path: "config.toml", Keys: keys("model_reasoning_effort", "model_reasoning_summary", "model_verbosity", "personality", "plan_mode_reasoning_effort",
			"hide_agent_reasoning", "show_raw_agent_reasoning", "developer_instructions", "compact_prompt", "commit_attribution", "file_opener",
			"project_doc_max_bytes", "project_doc_fallback_filenames", "web_search", "service_tier")},
		Belonging{Path: "config.toml", Runs: true, Keys: keys("notify", "mcp_servers", "hooks"), Without: withKeys},
		Belonging{Path: "hooks.json", Runs: true},
		Belonging{Path: "hooks", Runs: true},
		Belonging{Path: "agents", Runs: true},
		Belonging{Path: "skills", Runs: true},
	)
}

// geminiBelongings: geminicli.com/docs, "Configuration".
func geminiBelongings() []Belonging {
	return belowHome(".gemini", "", 0,
		Belonging{Path: "GEMINI.md"},
		Belonging{Path: "settings.json", Keys: [][]string{
			{"general", "vimMode"}, {"ui", "theme"}, {"ui", "customThemes"}, {"ui", "hideTips"}, {"ui", "hideBanner"}, {"ui", "showLineNumbers"},
			{"model", "name"}, {"model", "maxSessionTurns"}, {"model", "compressionThreshold"}, {"context", "fileName"}, {"context", "discoveryMaxDirs"},
		}},
		Belonging{Path: "settings.json", Runs: true, Keys: [][]string{{"mcpServers"}, {"hooks"}, {"tools", "discoveryCommand"}, {"tools", "callCommand"}}, Without: withKeys},
		Belonging{Path: "hooks", Runs: true},
		Belonging{Path: "commands", Runs: true},
		Belonging{Path: "agents", Runs: true},
		Belonging{Path: "skills", Runs: true},
	)
}

// opencodeBelongings: opencode.ai/docs, "Config" and "Rules".
func opencodeBelongings() []Belonging {
	all := []Belonging{{Path: "AGENTS.md"}, {Path: "themes"}}
	for _, config := range []string{"opencode.json", "opencode.jsonc"} {
		all = append(all,
			Belonging{Path: config, Keys: keys("model", "small_model"), Unless: keys("provider")},
			Belonging{Path: config, Keys: keys("theme", "keybinds", "username")},
			Belonging{Path: config, Runs: true, Keys: keys("mcp", "formatter", "lsp", "command", "agent"), Without: withKeys})
	}
	for _, config := range []string{"tui.json", "tui.jsonc"} {
		all = append(all, Belonging{Path: config, Keys: keys("theme", "keybinds", "scroll_speed", "diff_style")})
	}
	for _, dir := range []string{"command", "commands", "agent", "agents", "skill", "skills", "tool", "tools", "plugin", "plugins"} {
		all = append(all, Belonging{Path: dir, Runs: true})
	}
	return belowHome(".config/opencode", "XDG_CONFIG_HOME", 1, all...)
}
