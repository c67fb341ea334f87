package config_test

import (
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/config"
	"github.com/litterbox-sandbox/litterbox/internal/meter"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/secret"
	"github.com/litterbox-sandbox/litterbox/internal/service"
)

func parse(t *testing.T, file, content string) config.Config {
	t.Helper()
	c, err := config.Parse(file, []byte(content))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const userFile = `durability = "strict"
driver = "namespace"
git.branch-prefix = "me/"
container.base-image = "host"
container.runtime = "runsc"
container.packages = ["jq"]
container.package-caches = ["pip", "go"]
container.build-caches = ["ccache", "go-build"]
container.setup-command = ["true"]
container.env = { EDITOR = "vi", A = "user" }
mounts.read-only = ["~/.gitignore", "/opt/shared"]
mounts.read-write = ["~/data"]
container.services.db = { command = ["redis-server"], restart = "never" }
container.services.cache = { command = ["memcached"] }
container.ports = ["web", "debug"]
container.ports-listen = "0.0.0.0"
network.default = "deny"
network.allow = ["preset:go", "example.com"]
network.deny = ["ads.example.com"]
secrets.API_KEY = { from = "keyring:api", hosts = ["api.example.com"] }
secrets.DB_KEY = { from = "env:DB_KEY", hosts = ["db.example.com"], in = ["basic", "query"] }
copy = ["config/local.test"]
retention.keep-last = 9
retention.states = ["failed"]
limits.budget = "5 USD"
hooks = { pre_run = ["true"], post_sync = ["make", "db"] }
tools = { nodejs = "20.1.0", go = "1.23.4" }
golden = { inputs = ["a"], agents = ["codex"] }
snapshots.every = "off"
ssh-agent = { keys = ["work"], hosts = ["github.com"] }
shell.rc = "~/.config/litterbox/shellrc"
editors.cache = ["zed"]
cost = { meter = true, day-budget = "20 USD", hosts = ["LLM.example.com"], prices = { mine = { input = 1, output = 2.5 } } }
`

const repositoryFile = `durability = "normal"
driver = "landlock"
git.branch-prefix = ""
git.history = "one"
container.base-image = "debian:12"
container.packages = ["ripgrep", "jq"]
container.package-caches = ["go", "npm"]
container.build-caches = ["go-build", "sccache"]
container.setup-command = ["make", "setup"]
container.env = { A = "repo", B = "repo" }
mounts.read-only = ["/opt/shared", "/opt/sdk"]
mounts.read-write = ["/srv/common"]
container.services.db = { command = ["postgres"] }
container.services.web = { command = ["npm", "run", "dev"], needs = ["db"] }
container.ports = { web = 3000, api = 0 }
network.default = "allow"
network.allow = ["EXAMPLE.com", "github.com:22"]
network.deny = ["telemetry.example.com", "ads.example.com"]
security.nested = true
secrets.API_KEY = { from = "env:API_KEY", hosts = ["api.example.org"] }
secrets.NPM_TOKEN = { from = 'command:["pass", "show", "npm"]', hosts = ["registry.example.org"] }
copy = ["./*.db"]
retention = { max-age = "2w", max-disk = "1.5GiB", keep-last = 3, states = ["stopped", "orphaned"], trash = "3d" }
limits = { cpus = 2, memory = "4GiB", pids = 500, disk = "1GiB", disk-io = "1MiB", open-files = 1000, time = "1h", idle-pause = "5m", idle-stop = "30m", budget = "9 USD, 2M tokens" }
ssh-agent.enabled = true
hooks = { pre_run = ["npm", "ci"], post_provision = ["id"], post_sync = ["make", "seed"] }
tools = { node = "22.11.0" }
golden = { inputs = ["./b/c", "a"], agents = ["claude"], refresh = "auto" }
snapshots = { every = "iteration", keep = 5 }
`

func TestMerge(t *testing.T) {
	t.Parallel()
	user, repo := parse(t, "user", userFile), parse(t, "repo", repositoryFile)
	untrusted := config.Config{
		Git:    config.Git{History: config.HistoryOne},
		Driver: "namespace",
		Container: config.Container{
			BaseImage:     "host",
			Runtime:       "runsc",
			PackageCaches: []string{"go"},
			Packages:      []string{"jq"},
			BuildCaches:   []string{"ccache", "go-build"},
			SetupCommand:  []string{"make", "setup"},
			Env:           map[string]string{"EDITOR": "vi", "A": "repo", "B": "repo"},
			Services: []service.Spec{
				{Name: "cache", Command: []string{"memcached"}, Autostart: true},
				{Name: "db", Command: []string{"postgres"}, Autostart: true},
				{Name: "web", Command: []string{"npm", "run", "dev"}, Needs: []string{"db"}, Autostart: true},
			},
			Ports:       []config.Port{{Name: "api"}, {Name: "debug"}, {Name: "web", Inside: 3000}},
			PortsListen: "0.0.0.0",
		},
		Mounts: config.Mounts{ReadOnly: []string{"~/.gitignore", "/opt/shared"}, ReadWrite: []string{"~/data"}},
		Network: config.Network{
			Default: "deny", Allow: []string{"preset:go", "example.com"},
			Deny: []string{"ads.example.com", "telemetry.example.com"},
		},
		Secrets:    user.Secrets,
		Durability: config.Strict,
		Copy:       []string{"config/local.test"},
		Retention:  config.Retention{KeepLast: 9, States: []string{"failed"}},
		Limits: sandbox.Limits{
			CPUs: 2, Memory: 4 << 30, PIDs: 500, Disk: 1 << 30, DiskIO: 1 << 20, OpenFiles: 1000, Time: time.Hour,
			Budget: sandbox.Budget{USD: 5e9, Tokens: 2e6}, // the stricter of each
		},
		Hooks:     config.Hooks{PreRun: []string{"true"}, PostSync: []string{"make", "db"}},
		Golden:    config.Golden{Tools: map[string]string{"node": "20.1.0", "go": "1.23.4"}, Agents: []string{"codex"}, Inputs: []string{"a", "b/c"}},
		Snapshots: config.Snapshots{Every: "off"},
		Editors:   config.Editors{Cache: []string{"zed"}},
		Shell:     config.Shell{RC: "~/.config/litterbox/shellrc"},
		SSHAgent:  config.SSHAgent{Keys: []string{"work"}, Hosts: []string{"github.com"}},
		Cost: config.Cost{
			Meter: true, DayBudget: sandbox.Budget{USD: 20e9}, Hosts: []string{"llm.example.com"},
			Prices: map[string]meter.Price{"mine": {Input: 1e9, Output: 25e8, CacheRead: 1e9, CacheWrite: 1e9, CacheHour: 1e9}},
		},
		IdlePause: 5 * time.Minute,
		IdleStop:  30 * time.Minute,
		Set: []string{
			"container.base-image", "container.build-caches", "container.env", "container.package-caches", "container.packages", "container.ports", "container.ports-listen", "container.runtime", "container.services",
			"container.setup-command", "copy", "cost.day-budget", "cost.hosts", "cost.meter", "cost.prices", "driver", "durability", "editors.cache", "git.branch-prefix", "git.history", "golden.agents", "golden.inputs", "hooks.post_sync", "hooks.pre_run",
			"limits.budget", "limits.cpus", "limits.disk", "limits.disk-io", "limits.idle-pause", "limits.idle-stop", "limits.memory", "limits.open-files", "limits.pids", "limits.time",
			"mounts.read-only", "mounts.read-write",
			"network.allow", "network.default", "network.deny",
			"retention.keep-last", "retention.states", "secrets", "shell.rc", "snapshots.every", "ssh-agent.hosts", "ssh-agent.keys", "tools",
		},
		File: "repo", Hash: repo.Hash,
	}
	trusted := untrusted
	trusted.Driver = "landlock"
	trusted.Container.BaseImage = "debian:12"
	trusted.Container.Packages = []string{"jq", "ripgrep"}
	trusted.Container.BuildCaches = []string{"go-build", "sccache"}
	trusted.Mounts.ReadOnly = []string{"~/.gitignore", "/opt/shared", "/opt/sdk"}
	trusted.Mounts.ReadWrite = []string{"~/data", "/srv/common"}
	trusted.SSHAgent.Enabled = true
	trusted.Security.Nested = true
	trusted.Network.Default = "allow"
	trusted.Network.Allow = []string{"preset:go", "example.com", "github.com:22"}
	trusted.Copy = []string{"config/local.test", "*.db"}
	trusted.Set = append(slices.Clone(untrusted.Set), "golden.refresh", "hooks.post_provision", "retention.max-age", "retention.max-disk", "retention.trash", "security.nested", "snapshots.keep", "ssh-agent.enabled")
	slices.Sort(trusted.Set)
	trusted.Durability = repo.Durability
	trusted.Hooks, trusted.Snapshots = repo.Hooks, repo.Snapshots
	trusted.Golden = config.Golden{
		Tools: map[string]string{"node": "22.11.0", "go": "1.23.4"}, Agents: []string{"claude"}, Inputs: []string{"a", "b/c"}, Refresh: config.RefreshAuto,
	}
	trusted.Secrets = []secret.Spec{repo.Secrets[0], user.Secrets[1], repo.Secrets[1]}
	trusted.Retention = config.Retention{
		MaxAge: 14 * 24 * time.Hour, MaxDisk: 3 << 29, KeepLast: 3, States: []string{"stopped", "orphaned"}, Trash: 3 * 24 * time.Hour,
	}

	defaults := user
	defaults.File, defaults.Hash = "", ""
	for name, c := range map[string]struct {
		user, repo config.Config
		trusted    bool
		want       config.Config
		withheld   []string
	}{
		"not trusted": {user, repo, false, untrusted, []string{
			"driver", "container.base-image", "container.packages", "container.build-caches", "mounts.read-only", "mounts.read-write", "network.default", "network.allow", "security.nested", "secrets", "copy",
			"retention.max-age", "retention.max-disk", "retention.keep-last", "retention.states", "retention.trash", "durability", "ssh-agent.enabled",
			"hooks.pre_run", "hooks.post_provision", "hooks.post_sync", "snapshots.every", "snapshots.keep", "tools", "golden.agents", "golden.refresh",
		}},
		"trusted":                {user, repo, true, trusted, nil},
		"no repository file":     {user, config.Config{}, false, defaults, nil},
		"no user file":           {config.Config{}, repo, true, repo, nil},
		"neither":                {config.Config{}, config.Config{}, true, config.Config{}, nil},
		"nothing to trust":       {user, parse(t, "r", ""), false, withFile(user, parse(t, "r", "")), nil},
		"the user may do it all": {parse(t, "u", "security.nested = true"), config.Config{}, false, config.Config{Security: config.Security{Nested: true}, Set: []string{"security.nested"}}, nil},
		"an untrusted repository narrows": {
			parse(t, "u", "network.default = 'allow'"), parse(t, "r", "network.default = 'deny'\nnetwork.deny = ['a.example']"), false,
			withFile(
				config.Config{Network: config.Network{Default: "deny", Deny: []string{"a.example"}}, Set: []string{"network.default", "network.deny"}},
				parse(t, "r", "network.default = 'deny'\nnetwork.deny = ['a.example']"),
			), nil,
		},
		"an untrusted repository does not widen": {
			config.Config{}, parse(t, "r", "network.default = 'allow'\nnetwork.allow = ['a.example']"), false,
			withFile(config.Config{}, parse(t, "r", "network.default = 'allow'\nnetwork.allow = ['a.example']")),
			[]string{"network.default", "network.allow"},
		},
		"a trusted false wins": {
			parse(t, "u", "security.nested = true"), parse(t, "r", "security.nested = false"), true,
			withFile(config.Config{Set: []string{"security.nested"}}, parse(t, "r", "security.nested = false")), nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, withheld := config.Merge(c.user, c.repo, c.trusted)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(- want, + got):\n%s", diff)
			}
			if diff := cmp.Diff(c.withheld, withheld); diff != "" {
				t.Errorf("withheld (- want, + got):\n%s", diff)
			}
		})
	}
	if diff := cmp.Diff(parse(t, "user", userFile), user); diff != "" {
		t.Errorf("the user's own was changed:\n%s", diff)
	}
	if diff := cmp.Diff(parse(t, "repo", repositoryFile), repo); diff != "" {
		t.Errorf("the repository's own was changed:\n%s", diff)
	}
}

func withFile(c, repo config.Config) config.Config {
	c.File, c.Hash = repo.File, repo.Hash
	return c
}

// Everything that reaches the host or weakens the sandbox needs trust; the list
// is repeated here so that no one drops it by accident.
func TestKeys(t *testing.T) {
	t.Parallel()
	var names, trusted []string
	for _, key := range config.Keys() {
		if !key.Own {
			names = append(names, key.Name)
		}
		if key.NeedsTrust {
			trusted = append(trusted, key.Name)
		}
		if key.Type == "" || key.Meaning == "" {
			t.Errorf("%s is not documented", key.Name)
		}
	}
	if diff := cmp.Diff([]string{"driver", "container.base-image", "container.packages", "container.build-caches", "mounts.read-only", "mounts.read-write", "network.default", "network.allow", "security.nested", "secrets", "copy",
		"retention.max-age", "retention.max-disk", "retention.keep-last", "retention.states", "retention.trash", "durability", "ssh-agent.enabled",
		"hooks.pre_run", "hooks.post_provision", "hooks.post_sync", "snapshots.every", "snapshots.keep", "tools", "golden.agents", "golden.refresh"}, trusted); diff != "" {
		t.Errorf("keys that need trust (- want, + got):\n%s", diff)
	}
	slices.Sort(names)
	if diff := cmp.Diff(names, parse(t, "f", repositoryFile).Set); diff != "" {
		t.Errorf("the merged file of the tests does not set every key:\n%s", diff)
	}
}

// git itself decides which branch names are valid. litterbox also refuses
// invisible characters and a second refs/; nothing else may differ.
func TestBranchPrefixIsWhatGitTakes(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Fatal("litterbox needs git, and so do its tests")
	}
	stricter := []string{"refs/", "refs/heads/", "a\u200b", "\u202e"}
	for _, prefix := range append([]string{
		"", "a", "a/", "a/b/", "agent-", "ä/", "@", "@/", "a@", "é.", "a./", "a/b.c-", "HEAD/", "x=", "a'", `a"`, "$(x)/",
		"/", "a//", "/a", ".", ".a/", "a/.", "a/.b", "a..", "..", "a.", "lock", "a.lock/", ".lock", "x.l", "-", "-a/", "a/-",
		"~", "^", ":", "?", "*", "[", `\`, " ", "a b/", "\t", "\n", "\x7f", "@{", "a@{b/", "{", "a{", "a}", "]",
	}, stricter...) {
		want := !slices.Contains(stricter, prefix)
		for _, name := range []string{"x", "lock", "fix-1"} {
			want = want && exec.CommandContext(t.Context(), "git", "check-ref-format", "--branch", prefix+name).Run() == nil
		}
		_, err := config.Parse("f", []byte("git.branch-prefix = "+tomlString(prefix)))
		if got := err == nil; got != want {
			t.Errorf("prefix %q: accepted %t, git %t (%v)", prefix, got, want, err)
		}
	}
}

// tomlString escapes every byte that a basic string may not hold unescaped.
func tomlString(s string) string {
	const digits = "0123456789abcdef"
	quoted := []byte{'"'}
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == 0x7f || c == '"' || c == '\\' {
			quoted = append(quoted, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		} else {
			quoted = append(quoted, c)
		}
	}
	return string(append(quoted, '"'))
}

// A repository may ask for less than the human's own file gives, never for more.
func TestMergeKeepsTheStricterLimit(t *testing.T) {
	t.Parallel()
	user := parse(t, "user", "[limits]\nmemory = '8GiB'\npids = 1000\ncpus = 'none'\nidle-pause = '1h'\n")
	repo := parse(t, "repo", "[limits]\nmemory = '4GiB'\npids = 'none'\ncpus = 2\ntime = '1h'\nidle-pause = '5m'\n")
	for _, trusted := range []bool{false, true} {
		merged, withheld := config.Merge(user, repo, trusted)
		want := sandbox.Limits{Memory: 4 << 30, PIDs: 1000, CPUs: 2, Time: time.Hour}
		if merged.Limits != want || merged.IdlePause != 5*time.Minute || len(withheld) > 0 {
			t.Errorf("trusted %t: %+v, %s, %q; want %+v", trusted, merged.Limits, merged.IdlePause, withheld, want)
		}
	}
}
