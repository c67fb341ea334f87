package config

import "slices"

// Hooks is the section about commands that run at certain moments, all inside.
type Hooks struct {
	PreRun        []string // arguments of one command, before each run of an agent
	PostProvision []string // likewise, the first of a golden's build
	PostSync      []string // likewise, the last
}

// hookKeys are the keys of [hooks].
//
// To add one: a field above, and an entry here. A hook of a repository runs
// inside, and needs trust all the same: it runs unasked, again and again.
func hookKeys() []key {
	return []key{
		{
			Key: Key{
				Name: "hooks.pre_run", Type: "list of strings", NeedsTrust: true,
				Meaning: `Command and arguments to run inside before each run of an agent (` + "`litterbox agent run`, `agent resume`" + `), for example ["npm", "ci"]. It runs in the project directory, its changes are committed, and if it fails the agent does not start. For several commands use ["sh", "-c", "…"].`,
			},
			shape: list,
			read: func(c *Config, v value) []problem {
				c.Hooks.PreRun = v.texts()
				return checkCommandOf("hooks.pre_run", v)
			},
			merge: func(base *Config, over Config) { base.Hooks.PreRun = slices.Clone(over.Hooks.PreRun) },
		},
		{
			Key: Key{
				Name: "hooks.post_provision", Type: "list of strings", NeedsTrust: true,
				Meaning: `Command and arguments that ` + "`litterbox build`" + ` runs first in a golden, before tools are installed. For several commands use ["sh", "-c", "…"]. See [golden.md](golden.md).`,
			},
			shape: list,
			read: func(c *Config, v value) []problem {
				c.Hooks.PostProvision = v.texts()
				return checkCommandOf("hooks.post_provision", v)
			},
			merge: func(base *Config, over Config) {
				base.Hooks.PostProvision = slices.Clone(over.Hooks.PostProvision)
			},
		},
		{
			Key: Key{
				Name: "hooks.post_sync", Type: "list of strings", NeedsTrust: true,
				Meaning: `Command and arguments that ` + "`litterbox build`" + ` runs last in a golden, while the services run, and ` + "`litterbox golden update`" + ` after it has brought a golden to HEAD: a database's migrations, for example.`,
			},
			shape: list,
			read: func(c *Config, v value) []problem {
				c.Hooks.PostSync = v.texts()
				return checkCommandOf("hooks.post_sync", v)
			},
			merge: func(base *Config, over Config) { base.Hooks.PostSync = slices.Clone(over.Hooks.PostSync) },
		},
	}
}
