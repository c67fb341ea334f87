package agents

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Exclusive reports whether a checkout's settings are meant for a client outside:
// they deny it its own tools, or start litterbox's server, as Install writes them.
type Exclusive struct {
	Exclusive bool
	Denies    bool // its own tools
	// Rest is the project's settings of Claude Code without those, as JSON, for a
	// client that takes them instead of the file; empty where there are none.
	Rest string
}

// largestSettings bounds a file of a checkout that is read.
const largestSettings = 1 << 20

// Exclusively looks into the settings of a client in a checkout.
func Exclusively(top, name string) Exclusive {
	client, err := ByName(name)
	if err != nil {
		return Exclusive{}
	}
	host := Host{Env: func(string) string { return "" }}
	var found Exclusive
	files := client.config(host, Project)
	if client.exclusive != nil {
		for _, s := range client.exclusive(host, Project) {
			if s.file != "" {
				files = append(files, s.file)
			}
		}
	}
	for _, file := range files {
		content := settingsIn(top, file)
		found.Denies = found.Denies || name == "gemini" && strings.Contains(content, `"run_shell_command"`) && strings.Contains(content, `"exclude"`)
		if strings.Contains(content, ServerName) || name == "claude" && strings.Contains(content, `"deny"`) {
			found.Exclusive = true
		}
		if name == "claude" && file == ".claude/settings.json" && content != "" {
			found.Rest = withoutDenials(content)
		}
	}
	return found
}

// settingsIn reads a file of the checkout, which a link must not lead out of.
func settingsIn(top, file string) string {
	root, err := os.OpenRoot(top)
	if err != nil {
		return ""
	}
	defer root.Close()
	if info, err := root.Lstat(filepath.FromSlash(file)); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	opened, err := root.Open(filepath.FromSlash(file))
	if err != nil {
		return ""
	}
	defer opened.Close()
	content, err := io.ReadAll(io.LimitReader(opened, largestSettings))
	if err != nil {
		return ""
	}
	return string(content)
}

// withoutDenials is a settings file of Claude Code without the values that Install
// denies and allows in it.
func withoutDenials(content string) string {
	var document map[string]any
	decoder := json.NewDecoder(strings.NewReader(content))
	decoder.UseNumber() // the project's figures stay as they are
	if decoder.Decode(&document) != nil || decoder.Decode(new(any)) != io.EOF || document == nil {
		return ""
	}
	permissions, _ := document["permissions"].(map[string]any)
	drop := func(key string, ours []string) {
		list, _ := permissions[key].([]any)
		kept := slices.DeleteFunc(list, func(item any) bool {
			text, _ := item.(string)
			return slices.Contains(ours, text)
		})
		if list != nil {
			permissions[key] = kept
		}
	}
	drop("deny", claudeTools())
	drop("allow", []string{"mcp__" + ServerName})
	rest, err := json.Marshal(document)
	if err != nil {
		return ""
	}
	return string(rest)
}
