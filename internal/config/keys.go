package config

import (
	"maps"
	"slices"
	"strings"
)

// Key describes one key, for the reference documentation.
type Key struct {
	Name       string // full, with dots
	Type       string
	Meaning    string
	NeedsTrust bool // from a repository it counts only after `litterbox trust`
}

// Keys lists every key in the order of the documentation.
func Keys() []Key {
	var keys []Key
	for _, key := range schema() {
		keys = append(keys, key.Key)
	}
	return keys
}

// key is a documented key with what is done about it.
type key struct {
	Key
	shape shape
	// read stores a value of the right shape and names what is wrong with it.
	read func(*Config, value) []problem
	// merge puts the value that over sets above the one in base.
	merge func(base *Config, over Config)
}

// schema is every key that acts.
//
// To add a key: 1. a field in config.go, 2. its entry here, 3. out of planned
// if it stands there, 4. a case in the tests, 5. make docs.
func schema() []key {
	return []key{
		{
			Key: Key{
				Name: "container.setup-command", Type: "list of strings",
				Meaning: `Command and arguments run once inside when a sandbox is created, for example ["npm", "ci"]. It runs in the project directory, and its result is committed. For several commands use ["sh", "-c", "…"].`,
			},
			shape: list,
			read: func(c *Config, v value) []problem {
				c.Container.SetupCommand = v.texts()
				return checkCommand(v)
			},
			merge: func(base *Config, over Config) {
				base.Container.SetupCommand = slices.Clone(over.Container.SetupCommand)
			},
		},
		{
			Key: Key{
				Name: "container.env", Type: "table of strings",
				Meaning: "Environment variables of every command inside. Do not put secrets here: they would be in the file, and inside. Variables of the repository and of the user are joined, the repository's win.",
			},
			shape: table,
			read: func(c *Config, v value) []problem {
				if c.Container.Env == nil {
					c.Container.Env = map[string]string{}
				}
				for _, entry := range v.items {
					c.Container.Env[entry.name] = entry.text
				}
				return checkEnvironment(v)
			},
			merge: func(base *Config, over Config) {
				if base.Container.Env == nil {
					base.Container.Env = map[string]string{}
				}
				maps.Copy(base.Container.Env, over.Container.Env)
			},
		},
		{
			Key: Key{
				Name: "git.branch-prefix", Type: "string",
				Meaning: `Put in front of the sandbox's name to make its branch, for example "agent/".`,
			},
			shape: text,
			read: func(c *Config, v value) []problem {
				c.Git.BranchPrefix = v.text
				return checkPrefix(v)
			},
			merge: func(base *Config, over Config) { base.Git.BranchPrefix = over.Git.BranchPrefix },
		},
		{
			Key: Key{
				Name: "mounts.read-only", Type: "list of strings", NeedsTrust: true,
				Meaning: "Host files and directories that are visible inside, read-only, at their own paths: absolute, or beginning with ~/. Those of the repository and of the user are joined.",
			},
			shape: list,
			read: func(c *Config, v value) []problem {
				var problems []problem
				c.Mounts.ReadOnly, problems = readPaths(v)
				return problems
			},
			merge: func(base *Config, over Config) {
				for _, path := range over.Mounts.ReadOnly {
					if !slices.Contains(base.Mounts.ReadOnly, path) {
						base.Mounts.ReadOnly = append(base.Mounts.ReadOnly, path)
					}
				}
			},
		},
		{
			Key: Key{
				Name: "security.nested", Type: "true or false", NeedsTrust: true,
				Meaning: "Allow user namespaces inside, which bwrap, Chromium's own sandbox and rootless Podman need. It opens kernel code to the sandbox that is closed otherwise, and is shown in listings.",
			},
			shape: boolean,
			read: func(c *Config, v value) []problem {
				c.Security.Nested = v.truth
				return nil
			},
			merge: func(base *Config, over Config) { base.Security.Nested = over.Security.Nested },
		},
		{
			Key: Key{
				Name: "durability", Type: `"normal" or "strict"`,
				Meaning: `"strict" flushes every commit to the disk before the command returns; with "normal" a power loss may cost the last seconds, never consistency.`,
			},
			shape: text,
			read: func(c *Config, v value) []problem {
				c.Durability = Durability(v.text)
				return checkDurability(v)
			},
			merge: func(base *Config, over Config) { base.Durability = over.Durability },
		},
	}
}

// planned are keys and sections of the design that no version acts on yet.
// They are named apart from unknown ones, and refused all the same: a
// [network] section that does nothing would be believed.
func planned() [][]string {
	names := []string{
		"agents", "claude", "container.base-image", "container.ports", "container.services", "hooks", "limits",
		"network", "project", "retention", "secrets", "sync", "tools", "vm", "watch",
	}
	var paths [][]string
	for _, name := range names {
		paths = append(paths, strings.Split(name, "."))
	}
	return paths
}

// isSection tells whether some key lies below name.
func isSection(name string) bool {
	return slices.ContainsFunc(schema(), func(k key) bool { return strings.HasPrefix(k.Name, name+".") })
}
