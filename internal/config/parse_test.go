package config_test

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/config"
	"github.com/litterbox-sandbox/litterbox/internal/egress"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

const complete = `# everything there is
durability = "strict"

[container]
setup-command = ["npm", "ci"]
env = { NODE_ENV = "development", EMPTY = "" }

[git]
branch-prefix = "agent/"

[mounts]
read-only = [
  "/opt/sdk/", # a comment
  "~/.cache/../.m2",
]

[network]
default = "deny"
allow = [
  "API.example.com.", # canonical: api.example.com
  "*.example.org:443", "10.1.2.3:5432",
  "preset:npm",
  "head,get https://example.com/a/",
]
deny = ['telemetry.example.com']

[security]
nested = true

[limits]
cpus = 1.5
memory = "4GiB"
pids = 2_000
disk = "none"
disk-io = "50MiB/s"
open-files = "4096"
time = "90m"
idle-pause = "10m"
`

func TestParse(t *testing.T) {
	t.Parallel()
	everything := config.Config{
		Container: config.Container{SetupCommand: []string{"npm", "ci"}, Env: map[string]string{"NODE_ENV": "development", "EMPTY": ""}},
		Git:       config.Git{BranchPrefix: "agent/"},
		Mounts:    config.Mounts{ReadOnly: []string{"/opt/sdk", "~/.m2"}},
		Network: config.Network{
			Default: "deny",
			Allow:   []string{"api.example.com", "*.example.org:443", "10.1.2.3:5432", "preset:npm", "GET,HEAD https://example.com/a/"},
			Deny:    []string{"telemetry.example.com"},
		},
		Security: config.Security{Nested: true},
		Limits: sandbox.Limits{
			CPUs: 1.5, Memory: 4 << 30, PIDs: 2000, Disk: sandbox.NoLimit, DiskIO: 50 << 20, OpenFiles: 4096, Time: 90 * time.Minute,
		},
		IdlePause:  10 * time.Minute,
		Durability: config.Strict,
		Set: []string{
			"container.env", "container.setup-command", "durability", "git.branch-prefix",
			"limits.cpus", "limits.disk", "limits.disk-io", "limits.idle-pause", "limits.memory", "limits.open-files", "limits.pids", "limits.time", "mounts.read-only",
			"network.allow", "network.default", "network.deny", "security.nested",
		},
	}
	environment := config.Config{
		Container: config.Container{Env: map[string]string{"A": "1", "B_2": "2"}},
		Set:       []string{"container.env"},
	}
	for name, c := range map[string]struct {
		content string
		want    config.Config
	}{
		"nothing":             {"", config.Config{}},
		"comments":            {"# nothing\n\n", config.Config{}},
		"empty sections":      {"[container]\n[git]\n[mounts]\n[network]\n[security]\n", config.Config{}},
		"everything":          {strings.Replace(complete, "~/.cache/../.m2", "~/.m2", 1), everything},
		"table header":        {"[container.env]\nA = \"1\"\nB_2 = '2'\n", environment},
		"dotted keys":         {"container.env.A = \"1\"\ncontainer.env.B_2 = \"2\"\n", environment},
		"inline tables":       {"container = { env = { A = \"1\", B_2 = \"2\" } }", environment},
		"dotted in a table":   {"[container]\nenv.A = \"1\"\nenv.\"B_2\" = \"2\"\n", environment},
		"carriage returns":    {"[container.env]\r\nA = \"1\"\r\nB_2 = \"2\"\r\n", environment},
		"an empty table":      {"[container.env]\n", config.Config{Container: config.Container{Env: map[string]string{}}, Set: []string{"container.env"}}},
		"an empty command":    {"container.setup-command = []", config.Config{Container: config.Container{SetupCommand: []string{}}, Set: []string{"container.setup-command"}}},
		"a false boolean":     {"security.nested = false", config.Config{Set: []string{"security.nested"}}},
		"an empty prefix":     {"git.branch-prefix = ''", config.Config{Set: []string{"git.branch-prefix"}}},
		"an empty allow-list": {"network.allow = []", config.Config{Set: []string{"network.allow"}}},
		"a rule twice":        {"network.deny = ['a.example', 'A.example.', 'b.example']", config.Config{Network: config.Network{Deny: []string{"a.example", "b.example"}}, Set: []string{"network.deny"}}},
		"a multi-line array":  {"[mounts]\nread-only = [\n\"/a\",\n\n\"/b\"]\n", config.Config{Mounts: config.Mounts{ReadOnly: []string{"/a", "/b"}}, Set: []string{"mounts.read-only"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := config.Parse("f.toml", []byte(c.content))
			if err != nil {
				t.Fatal(err)
			}
			c.want.File, c.want.Hash = "f.toml", config.Hash([]byte(c.content))
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(- want, + got):\n%s", diff)
			}
		})
	}
}

func TestHash(t *testing.T) {
	t.Parallel()
	// The digest of nothing, as sha256sum prints it.
	const empty = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	if got := config.Hash(nil); got != empty {
		t.Errorf("Hash of nothing = %s", got)
	}
	if config.Hash([]byte("a")) == config.Hash([]byte("a\n")) {
		t.Error("two contents have one hash")
	}
}

// FuzzParse feeds the parser any file that a cloned repository may hold. An error
// must be printable on a terminal and point into the file, and an accepted file
// must keep the promises of the schema.
func FuzzParse(f *testing.F) {
	f.Add([]byte(complete))
	f.Add([]byte(strings.Replace(complete, "~/.cache/../.m2", "~/.m2", 1)))
	for _, c := range rejected() {
		f.Add([]byte(c.content))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		got, err := config.Parse("f.toml", content)
		if err != nil {
			checkError(t, err, strings.Count(string(content), "\n")+1)
			return
		}
		for _, path := range got.Mounts.ReadOnly {
			home := strings.HasPrefix(path, "~/")
			if !home && !strings.HasPrefix(path, "/") || path == "/" || strings.Contains(path+"/", "/../") || strings.HasPrefix(path+"/", "/proc/") || strings.ContainsFunc(path, unicode.IsControl) {
				t.Errorf("accepted the mount %q", path)
			}
		}
		for name, value := range got.Container.Env {
			if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(value, "\x00") {
				t.Errorf("accepted the variable %q = %q", name, value)
			}
		}
		if strings.ContainsAny(got.Git.BranchPrefix, " ~^:?*[\\\x7f\n") || strings.HasPrefix(got.Git.BranchPrefix, "-") {
			t.Errorf("accepted the prefix %q", got.Git.BranchPrefix)
		}
		if d := got.Network.Default; d != "" && d != egress.Deny && d != egress.Allow {
			t.Errorf("accepted the default %q", d)
		}
		for _, rule := range slices.Concat(got.Network.Allow, got.Network.Deny) {
			if parsed, err := egress.ParseRule(rule); err != nil || parsed.String() != rule {
				t.Errorf("accepted the rule %q, which reads as %q, %v", rule, parsed.String(), err)
			}
		}
		again, err := config.Parse("f.toml", content)
		if diff := cmp.Diff(got, again); err != nil || diff != "" {
			t.Errorf("read twice: %v\n%s", err, diff)
		}
	})
}

func checkError(t *testing.T, err error, lines int) {
	t.Helper()
	if kind := fault.KindOf(err); kind != fault.Invalid && kind != fault.Unsupported {
		t.Errorf("kind %s: %v", kind, err)
	}
	for i, line := range strings.Split(err.Error()+"\n"+fault.HintOf(err), "\n") {
		if strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("line %d of the error does not print: %q", i, line)
		}
		_, place, ok := strings.Cut(line, "line ")
		if !ok || !strings.Contains(line, ", column ") {
			continue
		}
		number := 0
		for _, digit := range place[:strings.IndexByte(place+",", ',')] {
			number = 10*number + int(digit-'0')
		}
		if number < 1 || number > lines {
			t.Errorf("the error points at line %d of %d: %s", number, lines, line)
		}
	}
}
