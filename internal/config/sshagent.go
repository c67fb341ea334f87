package config

import (
	"strings"
)

// SSHAgent is the section about the human's own ssh-agent.
type SSHAgent struct {
	Enabled bool
	Keys    []string // fingerprints or comments; none means all
	Hosts   []string // names in known_hosts to which logins need no question
}

// sshAgentKeys are the keys of [ssh-agent].
func sshAgentKeys() []key {
	never := func(*Config, Config) {}
	names := func(what, example string, into func(*Config) *[]string) func(*Config, value) []problem {
		return func(c *Config, v value) []problem {
			var problems []problem
			for _, item := range v.items {
				if item.text == "" || strings.ContainsAny(item.text, "\n\x00") {
					problems = append(problems, wrong(item, example, "%s must be names, not %q", what, item.text)...)
				}
			}
			*into(c) = union(nil, v.texts())
			return problems
		}
	}
	return []key{
		{
			Key: Key{
				Name: "ssh-agent.enabled", Type: "true or false", NeedsTrust: true, TrustFor: "true",
				Untrusted: "false only restricts",
				Meaning:   "Let programs inside ask your ssh-agent (SSH_AUTH_SOCK) for signatures; you approve each one. See [ssh-agent.md](ssh-agent.md).",
			},
			shape: boolean,
			read: func(c *Config, v value) []problem {
				c.SSHAgent.Enabled = v.truth
				return nil
			},
			harmless: func(c Config) bool { return !c.SSHAgent.Enabled },
			merge:    func(base *Config, over Config) { base.SSHAgent.Enabled = over.SSHAgent.Enabled },
		},
		{
			Key: Key{
				Name: "ssh-agent.keys", Type: "list of strings", Own: true,
				Meaning: `Which keys of your agent are offered, by fingerprint or comment, for example ["work@laptop"]; all of them, unless set.`,
			},
			shape: list,
			read:  names("ssh-agent.keys", `keys = ["work@laptop"]`, func(c *Config) *[]string { return &c.SSHAgent.Keys }),
			merge: never,
		},
		{
			Key: Key{
				Name: "ssh-agent.hosts", Type: "list of strings", Own: true,
				Meaning: `Hosts that programs may log in to without a question, for example ["github.com"]: a name that your known_hosts has for the key that the host proves.`,
			},
			shape: list,
			read:  names("ssh-agent.hosts", `hosts = ["github.com"]`, func(c *Config) *[]string { return &c.SSHAgent.Hosts }),
			merge: never,
		},
	}
}
