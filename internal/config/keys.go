package config

import (
	"slices"
	"strconv"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/egress"
	"github.com/litterbox-sandbox/litterbox/internal/packagecache"
)

// Key describes one key, for the reference documentation.
type Key struct {
	Name       string // full, with dots
	Type       string
	Meaning    string
	NeedsTrust bool // from a repository it counts only after `litterbox trust`
	// TrustFor is the one value that needs trust; empty means every value.
	TrustFor string
	Own      bool // only the human's own file may set it
	// Restricts says that a repository's value counts where it is stricter.
	Restricts bool
	// Untrusted says why a value of an untrusted repository may count; empty where
	// none does.
	Untrusted string
}

// Keys lists every key in the order of the documentation.
func Keys() []Key {
	var keys []Key
	for _, key := range schema() {
		keys = append(keys, key.Key)
	}
	return keys
}

// key is a documented key with its functions.
type key struct {
	Key
	shape shape
	// read stores a value of the right shape and reports problems with it.
	read func(*Config, value) []problem
	// merge puts the value from over above the one in base.
	merge func(base *Config, over Config)
	// harmless reports, for a key with TrustFor, whether the file sets a value
	// other than that.
	harmless func(Config) bool
	// nest takes the place of read for a key of shape nested.
	nest func(*Config, tree) []problem
}

// withheld reports whether the key's value in an untrusted file does not count.
func (k key) withheld(c Config) bool {
	return k.NeedsTrust && (k.harmless == nil || !k.harmless(c))
}

// schema is every key that acts.
//
// To add a key: 1. a field in config.go, 2. its entry here, 3. out of planned
// if it stands there, 4. a case in the tests, 5. make docs.
func schema() []key {
	return slices.Concat([]key{
		{
			Key: Key{
				Name: "driver", Type: "string", NeedsTrust: true,
				Meaning: "The driver that makes and runs new sandboxes, by the name that `litterbox doctor` lists; `--driver` overrides it. An existing sandbox keeps the driver that it was created with.",
			},
			shape: text,
			read: func(c *Config, v value) []problem {
				c.Driver = v.text
				return checkDriver(v)
			},
			merge: func(base *Config, over Config) { base.Driver = over.Driver },
		},
		{
			Key: Key{
				Name: "machine", Type: "string", Own: true,
				Meaning: "The machine on which new sandboxes are made, by the name that `litterbox machine list` shows; `--machine` and `--driver` override it.",
			},
			shape: text,
			read: func(c *Config, v value) []problem {
				c.Machine = v.text
				return checkMachine(v)
			},
			merge: func(base *Config, over Config) { base.Machine = over.Machine },
		},
	}, containerKeys(), []key{
		{
			Key: Key{
				Name: "editors.cache", Type: "list of strings", Own: true,
				Meaning: "Editors whose servers all sandboxes share: " + strings.Join(packagecache.EditorNames(), ", ") + "; none, unless set. They are read from your own home, where the editor itself puts them (`~/.vscode-server/cli/servers`), and appear inside below what a sandbox adds, which stays in that sandbox: yours never change, and no other sandbox sees it. A server that exists is not downloaded again ([ssh.md](ssh.md#editors)).",
			},
			shape: list,
			read: func(c *Config, v value) []problem {
				c.Editors.Cache = v.texts()
				return checkEditors(v, packagecache.EditorNames())
			},
			merge: func(*Config, Config) {}, // never from a repository
		},
		{
			Key: Key{
				Name: "git.branch-prefix", Type: "string",
				Untrusted: "an existing branch is not touched",
				Meaning:   `Put in front of the sandbox's name to make its branch, for example "agent/".`,
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
				Name: "git.history", Type: `"steps", "milestones" or "one"`,
				Untrusted: "the same files land, and the original commits stay reachable",
				Meaning:   `What merge and apply land: the commits as they are ("steps", the default), what came since the last milestone as one commit ("milestones"), or all of it as one ("one"). --squash=milestone and --squash=all choose for one merge.`,
			},
			shape: text,
			read: func(c *Config, v value) []problem {
				c.Git.History = v.text
				return checkHistory(v)
			},
			merge: func(base *Config, over Config) { base.Git.History = over.Git.History },
		},
		{
			Key: Key{
				Name: "mounts.read-only", Type: "list of strings", NeedsTrust: true,
				Meaning: "Host files and directories that are visible inside, read-only, at their own paths: absolute, or beginning with ~/. The lists of the repository and of the user are combined.",
			},
			shape: list,
			read: func(c *Config, v value) []problem {
				var problems []problem
				c.Mounts.ReadOnly, problems = readPaths(v)
				return problems
			},
			merge: func(base *Config, over Config) {
				base.Mounts.ReadOnly = union(base.Mounts.ReadOnly, over.Mounts.ReadOnly)
			},
		},
		{
			Key: Key{
				Name: "mounts.read-write", Type: "list of strings", NeedsTrust: true,
				Meaning: "Host directories that a sandbox shares with you and can write, at their own paths: absolute, or beginning with ~/. " +
					"What is written there is on the host at once: it is in no commit and no snapshot, and does not count towards limits.disk. " +
					"Treat programs and configuration in it as written by the sandbox. System directories, your whole home, and directories that hold litterbox's own files or the repository are refused; a path with a symbolic link in it is left out with a note. " +
					"It needs mounts, so the degraded tier leaves it out. The lists of the repository and of the user are combined.",
			},
			shape: list,
			read: func(c *Config, v value) []problem {
				var problems []problem
				c.Mounts.ReadWrite, problems = readPaths(v)
				return append(problems, notOfTheSystem(v)...)
			},
			merge: func(base *Config, over Config) {
				base.Mounts.ReadWrite = union(base.Mounts.ReadWrite, over.Mounts.ReadWrite)
			},
		},
		{
			Key: Key{
				Name: "network.default", Type: `"deny" or "allow"`, NeedsTrust: true, TrustFor: egress.Allow,
				Untrusted: "deny only restricts",
				Meaning:   `What happens to a destination that no rule names: "deny", unless set. With "allow", everything on the public internet that network.deny does not name can be reached, and listings show that.`,
			},
			shape: text,
			read: func(c *Config, v value) []problem {
				c.Network.Default = v.text
				return checkDefault(v)
			},
			merge:    func(base *Config, over Config) { base.Network.Default = over.Network.Default },
			harmless: func(c Config) bool { return c.Network.Default == egress.Deny },
		},
		{
			Key: Key{
				Name: "network.allow", Type: "list of strings", NeedsTrust: true,
				Meaning: `Rules for what may be reached, for example ["api.example.com", "*.example.org:443", "github.com:22", "10.1.2.3:5432", "preset:npm"]. A host without a port means 443 and 80. Rules of the repository and of the user are combined.`,
			},
			shape: list,
			read: func(c *Config, v value) []problem {
				var problems []problem
				c.Network.Allow, problems = readAllowed("network.allow", v)
				return problems
			},
			merge: func(base *Config, over Config) {
				base.Network.Allow = union(base.Network.Allow, over.Network.Allow)
			},
		},
		{
			Key: Key{
				Name: "network.deny", Type: "list of strings",
				Untrusted: "it only restricts",
				Meaning:   `Rules for what may not be reached, whatever network.allow says, for example ["telemetry.example.com"]. A host without a port means every port. Rules of the repository and of the user are combined.`,
			},
			shape: list,
			read: func(c *Config, v value) []problem {
				var problems []problem
				c.Network.Deny, problems = readRules(v)
				return problems
			},
			merge: func(base *Config, over Config) {
				base.Network.Deny = union(base.Network.Deny, over.Network.Deny)
			},
		},
		{
			Key: Key{
				Name: "security.nested", Type: "true or false", NeedsTrust: true,
				Meaning: "Allow user namespaces inside, which bwrap, Chromium's own sandbox and rootless Podman need. It opens kernel code to the sandbox that is otherwise closed, and listings show it.",
			},
			shape: boolean,
			read: func(c *Config, v value) []problem {
				c.Security.Nested = v.truth
				return nil
			},
			merge: func(base *Config, over Config) { base.Security.Nested = over.Security.Nested },
		},
		{
			Key:   Key{Name: "secrets", Type: "table of tables", NeedsTrust: true, Meaning: secretsMeaning},
			shape: nested,
			nest:  readSecrets,
			merge: func(base *Config, over Config) { base.Secrets = mergeSecrets(base.Secrets, over.Secrets) },
		},
		{
			Key: Key{
				Name: "copy", Type: "list of strings", NeedsTrust: true,
				Meaning: `Ignored files and directories of your checkout to copy into a new sandbox, without committing them, for example ["config/local.test", "fixtures/*.db"]. Paths are relative to the top of the repository; * stands for any characters except a slash. Files that git does not ignore stay out. The lists of the repository and of the user are combined.`,
			},
			shape: list,
			read: func(c *Config, v value) []problem {
				var problems []problem
				c.Copy, problems = readPatterns(v)
				return problems
			},
			merge: func(base *Config, over Config) { base.Copy = union(base.Copy, over.Copy) },
		},
		{
			Key: Key{
				Name: "retention.max-age", Type: "string", NeedsTrust: true,
				Meaning: `litterbox prune removes sandboxes that have been idle for this long, for example "30d" or "12h". Nothing is ever removed automatically.`,
			},
			shape: text,
			read: func(c *Config, v value) []problem {
				var why []problem
				c.Retention.MaxAge, why = readAge(v)
				return why
			},
			merge: func(base *Config, over Config) { base.Retention.MaxAge = over.Retention.MaxAge },
		},
		{
			Key: Key{
				Name: "retention.max-disk", Type: "string", NeedsTrust: true,
				Meaning: `While the sandboxes take more disk than this, for example "20GiB", litterbox prune removes the oldest.`,
			},
			shape: text,
			read: func(c *Config, v value) []problem {
				var why []problem
				c.Retention.MaxDisk, why = readSize(v)
				return why
			},
			merge: func(base *Config, over Config) { base.Retention.MaxDisk = over.Retention.MaxDisk },
		},
		{
			Key: Key{
				Name: "retention.keep-last", Type: "number", NeedsTrust: true,
				Meaning: `How many of the most recently used sandboxes to keep, however old they are.`,
			},
			shape: number,
			read: func(c *Config, v value) []problem {
				n, err := strconv.Atoi(v.text)
				if err != nil || n < 0 {
					return wrong(v, "keep-last = 5", "retention.keep-last must be a whole number from 0 on, not %s", v.text)
				}
				c.Retention.KeepLast = n
				return nil
			},
			merge: func(base *Config, over Config) { base.Retention.KeepLast = over.Retention.KeepLast },
		},
		{
			Key: Key{
				Name: "retention.states", Type: "list of strings", NeedsTrust: true,
				Meaning: `The states in which a sandbox may be removed: "stopped", "failed" and "orphaned"; the first two unless set. A running sandbox is never removed.`,
			},
			shape: list,
			read: func(c *Config, v value) []problem {
				var why []problem
				c.Retention.States, why = readStates(v)
				return why
			},
			merge: func(base *Config, over Config) { base.Retention.States = slices.Clone(over.Retention.States) },
		},
		{
			Key: Key{
				Name: "retention.trash", Type: "string", NeedsTrust: true,
				Meaning: `How long to keep the files, the home and the log of a sandbox that is deleted with unmerged work, for example "30d"; "7d" unless set, and "off" keeps none. They stay only while a tenth of the disk, or 10 GiB, is free; the files of a sandbox on another machine stay there, and that machine's disk counts. ` + "`litterbox trash`" + ` lists and restores them, and ` + "`litterbox prune`" + ` removes what is older.`,
			},
			shape: text,
			read: func(c *Config, v value) []problem {
				if c.Retention.Trash, c.Retention.NoTrash = 0, v.text == "off"; c.Retention.NoTrash {
					return nil
				}
				age, why := readAge(v)
				if why != nil {
					return wrong(v, `trash = "7d"`, "retention.trash must be a duration such as \"7d\" or \"12h\", or \"off\", not %q", v.text)
				}
				c.Retention.Trash = age
				return nil
			},
			merge: func(base *Config, over Config) {
				base.Retention.Trash, base.Retention.NoTrash = over.Retention.Trash, over.Retention.NoTrash
			},
		},
		{
			Key: Key{
				Name: "durability", Type: `"normal" or "strict"`, NeedsTrust: true, TrustFor: string(Normal),
				Untrusted: "more is flushed, nothing less",
				Meaning:   `"strict" flushes every commit to the disk before the command returns; with "normal", a power loss may cost the last seconds, but never consistency.`,
			},
			shape: text,
			read: func(c *Config, v value) []problem {
				c.Durability = Durability(v.text)
				return checkDurability(v)
			},
			harmless: func(c Config) bool { return c.Durability == Strict },
			merge:    func(base *Config, over Config) { base.Durability = over.Durability },
		},
		{
			Key:   Key{Name: "agents", Type: "table of tables", Own: true, Meaning: agentsMeaning},
			shape: nested,
			nest:  readAgents,
			merge: func(*Config, Config) {}, // never from a repository
		},
	}, limitKeys(), costKeys(), sshAgentKeys(), shellKeys(), hookKeys(), snapshotKeys(), goldenKeys(), vmKeys())
}

// planned are keys and sections of the design that no version acts on yet. They are
// named apart from unknown ones, and refused all the same: users would rely on a
// section that does nothing.
func planned() [][]string {
	names := []string{
		"claude",
		"project", "sync", "vm.docker", "watch",
	}
	var paths [][]string
	for _, name := range names {
		paths = append(paths, strings.Split(name, "."))
	}
	return paths
}

// isSection reports whether some key lies below name.
func isSection(name string) bool {
	return slices.ContainsFunc(schema(), func(k key) bool { return strings.HasPrefix(k.Name, name+".") })
}

// union is a followed by the elements that only b has.
func union(a, b []string) []string {
	known := make(map[string]bool, len(a))
	for _, item := range a {
		known[item] = true
	}
	for _, item := range b {
		if !known[item] {
			known[item] = true
			a = append(a, item)
		}
	}
	return a
}
