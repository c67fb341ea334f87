package config

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// Golden is what a golden is made of, besides the image, the environment, the
// set-up command and the services of the container, and the hooks of a build.
type Golden struct {
	Tools   map[string]string // exact versions by name
	Agents  []string          // clients that are there afterwards
	Inputs  []string          // clean paths of the repository that it depends on
	Refresh string            // [RefreshAuto] or [RefreshOff]; empty when not set: off
}

// What create does about a golden that is stale.
const (
	RefreshAuto = "auto" // makes it again first
	RefreshOff  = "off"  // only says so
)

// goldenKeys are the keys of [golden].
func goldenKeys() []key {
	return []key{
		{
			Key: Key{
				Name: "tools", Type: "table of strings", NeedsTrust: true,
				Meaning: `Exact versions of tools for a golden, for example { node = "22.11.0", go = "1.23.4" }. A tool that is already installed in that version is used; otherwise the tool's own installer (go, rustup) or an installed version manager (mise, asdf; fnm, nvm for node; uv, pyenv for python) installs it into HOME. Commands in sandboxes find these first.`,
			},
			shape: table,
			read:  readTools,
			merge: func(base *Config, over Config) {
				if base.Golden.Tools == nil {
					base.Golden.Tools = map[string]string{}
				}
				maps.Copy(base.Golden.Tools, over.Golden.Tools)
			},
		},
		{
			Key: Key{
				Name: "golden.agents", Type: "list of strings", NeedsTrust: true,
				Meaning: `Clients of agents that ` + "`litterbox build`" + ` installs if they are missing, for example ["claude"]; ` + "`litterbox agent run --help`" + ` lists them.`,
			},
			shape: list,
			read: func(c *Config, v value) []problem {
				var problems []problem
				for _, item := range v.items {
					if item.text == "" || strings.Trim(item.text, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
						problems = append(problems, wrong(item, `agents = ["claude"]`, "golden.agents: %q is not the name of a client", item.text)...)
					}
				}
				c.Golden.Agents = union(nil, v.texts())
				return problems
			},
			merge: func(base *Config, over Config) { base.Golden.Agents = slices.Clone(over.Golden.Agents) },
		},
		{
			Key: Key{
				Name: "golden.inputs", Type: "list of strings",
				Untrusted: "it only says when a golden is stale",
				Meaning:   `Files and directories of the repository that a golden depends on besides its lock files, for example ["db/schema.sql", "packages/api/package-lock.json"]: when they differ in the base of a new sandbox, the golden is stale. The lists of the repository and of the user are combined.`,
			},
			shape: list,
			read: func(c *Config, v value) []problem {
				var problems []problem
				for _, item := range v.items {
					clean := path.Clean(item.text)
					if item.text == "" || clean == "." || path.IsAbs(clean) || clean == ".." || strings.HasPrefix(clean, "../") || strings.ContainsAny(clean, "\n\x00*?[") {
						what := "paths below the top of the repository"
						if strings.ContainsAny(clean, "*?[") {
							what = "files or directories, without patterns"
						}
						problems = append(problems, wrong(item, `inputs = ["db/schema.sql"]`, "golden.inputs must be %s, not %q", what, item.text)...)
						continue
					}
					c.Golden.Inputs = union(c.Golden.Inputs, []string{clean})
				}
				return problems
			},
			merge: func(base *Config, over Config) { base.Golden.Inputs = union(base.Golden.Inputs, over.Golden.Inputs) },
		},
		{
			Key: Key{
				Name: "golden.refresh", Type: `"off" or "auto"`, NeedsTrust: true,
				Meaning: `What ` + "`litterbox create`" + ` does when a golden is stale: "off", the default, uses it and prints a note; "auto" builds a fresh one first.`,
			},
			shape: text,
			read: func(c *Config, v value) []problem {
				c.Golden.Refresh = v.text
				if v.text != RefreshAuto && v.text != RefreshOff {
					return wrong(v, `refresh = "auto"`, `golden.refresh must be "off" or "auto", not %q`, v.text)
				}
				return nil
			},
			merge: func(base *Config, over Config) { base.Golden.Refresh = over.Golden.Refresh },
		},
	}
}

// readTools takes names and exact versions: an inexact one would differ in each
// golden.
func readTools(c *Config, v value) []problem {
	const example = `tools = { node = "22.11.0" }`
	var problems []problem
	for _, entry := range v.items {
		name := entry.name
		if name == "nodejs" {
			name = "node"
		}
		if strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" || name == "" || name[0] == '-' || len(name) > 40 {
			problems = append(problems, wrong(entry, example, "tools: %q is not the name of a tool", entry.name)...)
			continue
		}
		if !exactVersion(entry.text) {
			problems = append(problems, wrong(entry, example, "tools.%s must be an exact version such as \"22.11.0\", not %q", entry.name, entry.text)...)
			continue
		}
		if c.Golden.Tools == nil {
			c.Golden.Tools = map[string]string{}
		}
		c.Golden.Tools[name] = entry.text
	}
	return problems
}

// exactVersion wants numbers with at least one dot, and what may follow them.
func exactVersion(version string) bool {
	major, rest, dotted := strings.Cut(version, ".")
	return dotted && len(version) <= 40 && major != "" && strings.Trim(major, "0123456789") == "" &&
		rest != "" && rest[0] >= '0' && rest[0] <= '9' &&
		strings.Trim(rest, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.+-_") == ""
}
