package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/config"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

type refusal struct {
	name, content, text, hint string
	kind                      fault.Kind // empty means fault.Invalid
}

func rejected() []refusal {
	return []refusal{
		{name: "a typing error", content: "\n  contianer.env = { A = '1' }\n", text: `line 2, column 3: unknown key "contianer.env"`, hint: `did you mean "container.env"?`},
		{name: "a typing error in a section", content: "[contianer]\nenv = 1\nmore = 2\n", text: `line 1, column 2: unknown key "contianer"`, hint: `did you mean "container"?`},
		{name: "a key without its section", content: `setup-command = ["x"]`, text: `line 1, column 1: unknown key "setup-command"`, hint: `did you mean "container.setup-command"?`},
		{name: "a table of names without its section", content: "[services.web]\ncommand = ['x']", text: `line 1, column 2: unknown key "services.web"`, hint: `did you mean "container.services"?`},
		{name: "a key in another section", content: "[container]\nnestde = true", text: `line 2, column 1: unknown key "container.nestde"`, hint: `did you mean "security.nested"?`},
		{name: "an underscore", content: "[git]\nbranch_prefix = 'a/'", text: `line 2, column 1: unknown key "git.branch_prefix"`, hint: `did you mean "git.branch-prefix"?`},
		{name: "the wrong case", content: "Durability = 'strict'", text: `line 1, column 1: unknown key "Durability"`, hint: `did you mean "durability"?`},
		{name: "nothing near", content: "[git]\nzzzzzzzzzz = 1", text: `line 2, column 1: unknown key "git.zzzzzzzzzz"`},
		{name: "a dot inside quotes", content: `"container.env" = 1`, text: `line 1, column 1: unknown key "\"container.env\""`, hint: `did you mean "container.env"?`},
		{name: "an escape sequence", content: `"\u001b[31mred" = 1`, text: `line 1, column 1: unknown key "\"\\x1b[31mred\""`},

		{name: "a command as a string", content: "[container]\nsetup-command = 'npm ci'", text: "line 2, column 17: container.setup-command must be a list of strings, not a string", hint: `setup-command = ["sh", "-c", "npm ci"]`},
		{name: "one word as a string", content: "[container]\nsetup-command = 'make'", text: "line 2, column 17: container.setup-command must be a list of strings, not a string", hint: `setup-command = ["make"]`},
		{name: "a number in a list", content: "[container]\nsetup-command = [\n  'sleep',\n  1]", text: "line 4, column 3: every element of container.setup-command must be a string, not a number"},
		{name: "a list in a list", content: "mounts.read-only = ['/a', ['/b']]", text: "line 1, column 20: every element of mounts.read-only must be a string, not a list"},
		{name: "a number in the environment", content: "[container.env]\nA = '1'\nPORT = 80", text: "line 3, column 8: container.env.PORT must be a string, not a number"},
		{name: "the same inline", content: "container.env = { A = '1', PORT = 80 }", text: "line 1, column 35: container.env.PORT must be a string, not a number"},
		{name: "a table in the environment", content: "[container.env.A]\nB = '1'", text: "line 1, column 2: container.env.A must be a string, not a table"},
		{name: "the same dotted", content: "container.env.A.B = '1'", text: "line 1, column 21: container.env.A must be a string, not a table"},
		{name: "the same inline and dotted", content: "container.env = { A.B = '1' }", text: "line 1, column 25: container.env.A must be a string, not a table"},
		{name: "the environment as a list", content: "container.env = ['A=1']", text: "line 1, column 17: container.env must be a table of strings, not a list"},
		{name: "the environment as a list of tables", content: "[[container.env]]\nA = '1'", text: "line 1, column 3: container.env must be a table of strings, not a list of tables", hint: "[container.env]"},
		{name: "a section as a list of tables", content: "[[git]]", text: "line 1, column 3: git must be a table, not a list of tables", hint: "[git]"},
		{name: "a section as a value", content: "git = 'agent/'", text: "line 1, column 7: git must be a table, not a string", hint: "[git]"},
		{name: "a key as a section", content: "[security.nested]\nx = 1", text: "line 1, column 2: security.nested must be true or false, not a table"},
		{name: "a boolean as a string", content: "security.nested = 'true'", text: "line 1, column 19: security.nested must be true or false, not a string"},
		{name: "a string as a date", content: "durability = 2026-01-02", text: "line 1, column 14: durability must be a string, not a date"},

		{name: "an unknown durability", content: "durability = 'paranoid'", text: `line 1, column 14: durability must be "normal" or "strict", not "paranoid"`, hint: `durability = "strict"`},
		{name: "a variable with a dash", content: "[container.env]\nA-B = '1'", text: `line 2, column 1: "A-B" is not a name for an environment variable`},
		{name: "a variable that begins with a digit", content: "container.env = { 1A = '1' }", text: `line 1, column 19: "1A" is not a name for an environment variable`},
		{name: "a NUL in a variable", content: `container.env.A = "\u0000"`, text: "line 1, column 1: the value of container.env.A holds a NUL byte"},
		{name: "a NUL in an argument", content: `container.setup-command = ["a", "\u0000"]`, text: "line 1, column 33: an argument of container.setup-command holds a NUL byte"},
		{name: "a command without a name", content: `container.setup-command = ["", "a"]`, text: "line 1, column 28: the command of container.setup-command is empty"},
		{name: "a history of another kind", content: "git.history = 'all'", text: `line 1, column 15: git.history must be "steps", "milestones" or "one", not "all"`, hint: `history = "one"`},
		{name: "a prefix with a space", content: "git.branch-prefix = 'my agent/'", text: `line 1, column 21: git.branch-prefix "my agent/" does not make a branch name: it holds ' '`, hint: `branch-prefix = "agent/"`},
		{name: "a relative mount", content: "mounts.read-only = ['sdk']", text: `line 1, column 21: cannot mount "sdk": it is neither absolute nor begins with ~/`},
		{name: "someone else's home", content: "mounts.read-only = ['~root/x']", text: `line 1, column 21: cannot mount "~root/x": it is neither absolute nor begins with ~/`},
		{name: "the whole home", content: "mounts.read-only = ['~/.']", text: `line 1, column 21: cannot mount "~/.": it is the whole home directory; name what is needed of it`},
		{name: "out of the home", content: "mounts.read-only = ['~/../x']", text: `line 1, column 21: cannot mount "~/../x": it holds ".."`},
		{name: "the root", content: "mounts.read-only = ['//.']", text: `line 1, column 21: cannot mount "//.": it is the whole host`},
		{name: "a mount below /proc", content: "mounts.read-only = ['/./proc//1/root']", text: `line 1, column 21: cannot mount "/./proc//1/root": a sandbox has its own /proc`},
		{name: "/sys", content: "mounts.read-only = ['/sys']", text: `line 1, column 21: cannot mount "/sys": a sandbox has its own /sys`},
		{name: "/dev", content: "mounts.read-only = ['/dev/']", text: `line 1, column 21: cannot mount "/dev/": a sandbox has its own /dev`},
		{name: "a part of the system to write", content: "mounts.read-write = ['/usr/local']", text: `line 1, column 22: cannot share "/usr/local": /usr belongs to the system`},
		{name: "all homes to write", content: "mounts.read-write = ['/home/']", text: `line 1, column 22: cannot share "/home/": it holds more than one directory to share`},
		{name: "the whole home to write", content: "mounts.read-write = ['~/.']", text: `line 1, column 22: cannot mount "~/.": it is the whole home directory; name what is needed of it`},
		{name: "a mount twice", content: "mounts.read-only = ['/a', '/b', '/a/']", text: `line 1, column 33: cannot mount "/a/": it is listed twice`},
		{name: "a mount with a newline", content: `mounts.read-only = ["/a\nb"]`, text: `line 1, column 21: cannot mount "/a\nb": it holds a control character`},

		{name: "an unknown default", content: "[network]\ndefault = 'ask'", text: `line 2, column 11: network.default must be "deny" or "allow", not "ask"`, hint: `default = "deny"`},
		{name: "a rule as a string", content: "[network]\nallow = 'example.com'", text: "line 2, column 9: network.allow must be a list of strings, not a string", hint: `allow = ["example.com"]`},
		{name: "a rule that allows everything", content: "[network]\nallow = [\n  'example.com', # fine\n  '*',\n]", text: `line 4, column 3: cannot use the network rule "*": it would match everything`, hint: `to allow everything, set default = "allow"`},
		{name: "an address that stands for a name", content: "[network]\ndeny = ['198.18.0.1']\nallow = ['a.example', '198.18.0.1']", text: `line 3, column 23: network.allow: cannot allow "198.18.0.1": inside, such an address stands for a name, and only the name can be allowed`, hint: "litterbox network NAME  # shows the name to write instead"},
		{name: "one that an agent asks for", content: "agents.x = { command = ['x'], allow = ['[fd6c:6974:7465:7262::1]:22'] }", text: `line 1, column 31: agents.x.allow: cannot allow "[fd6c:6974:7465:7262::1]:22": inside, such an address stands for a name, and only the name can be allowed`, hint: "litterbox network NAME  # shows the name to write instead"},
		{name: "a bad rule inline", content: "network = { deny = ['a.example', 'b.example:0'] }", text: `line 1, column 34: cannot use the network rule "b.example:0": it has the bad port "0"`, hint: "write a number from 1 to 65535, or * for every port"},
		{name: "a rule with an escape sequence", content: `network.allow = ["ex\u001b[2Jample/x"]`, text: `line 1, column 18: cannot use the network rule "ex\x1b[2Jample/x": a path needs http:// or https://`},
		{name: "an empty rule", content: `network.deny = [""]`, text: `line 1, column 17: cannot use the network rule "": it is empty`, hint: "write a host, such as api.example.com"},
		{name: "a section of the network", content: "[network.dns]", text: `line 1, column 2: unknown key "network.dns"`, hint: `did you mean "network.deny"?`},
		{
			name: "two bad rules", content: "[network]\nallow = ['udp://a.example']\ndeny = ['a b']",
			text: `2 problems
  line 2, column 10: cannot use the network rule "udp://a.example": udp needs a port (write udp://a.example:123)
  line 3, column 9: cannot use the network rule "a b": methods need http:// or https:// (write GET https://b)`,
		},

		{name: "a planned section", content: "[sync]\npaths = '1d'\n[sync.more]", kind: fault.Unsupported, text: `line 1, column 2: "sync" is not supported by this version yet`, hint: `delete "sync": it would have no effect`},
		{name: "a hook as a string", content: "hooks.pre_run = 'npm ci'", text: "line 1, column 17: hooks.pre_run must be a list of strings, not a string", hint: `pre_run = ["sh", "-c", "npm ci"]`},
		{name: "an empty hook", content: "hooks.pre_run = ['', 'x']", text: "line 1, column 18: the command of hooks.pre_run is empty"},
		{name: "snapshots at another time", content: "snapshots.every = 'commit'", text: `line 1, column 19: snapshots.every must be "iteration", "milestone" or "off", not "commit"`, hint: `every = "milestone"`},
		{name: "no snapshots to keep", content: "snapshots.keep = 0", text: `line 1, column 18: snapshots.keep must be a whole number from 1 to 1000, not 0`, hint: "keep = 10"},
		{name: "a planned section with a name", content: "[watch.claude]\ncommand = 'x'", kind: fault.Unsupported, text: `line 1, column 2: "watch" is not supported by this version yet`, hint: `delete "watch": it would have no effect`},
		{name: "a tool without an exact version", content: "tools.node = '22'", text: `line 1, column 1: tools.node must be an exact version such as "22.11.0", not "22"`, hint: `tools = { node = "22.11.0" }`},
		{name: "the name of a tool that a shell obeys", content: "tools.'a;b' = '1.0'", text: `line 1, column 1: tools: "a;b" is not the name of a tool`, hint: `tools = { node = "22.11.0" }`},
		{name: "an input that is a pattern", content: "golden.inputs = ['db/*.sql']", text: `line 1, column 18: golden.inputs must be files or directories, without patterns, not "db/*.sql"`, hint: `inputs = ["db/schema.sql"]`},
		{name: "an input outside of the repository", content: "golden.inputs = ['a/../../b']", text: `line 1, column 18: golden.inputs must be paths below the top of the repository, not "a/../../b"`, hint: `inputs = ["db/schema.sql"]`},
		{name: "another refresh", content: "golden.refresh = 'always'", text: `line 1, column 18: golden.refresh must be "off" or "auto", not "always"`, hint: `refresh = "auto"`},
		{name: "no package", content: "container.packages = ['jq', '--force']", text: `line 1, column 29: "--force" is not a package name`, hint: `packages = ["ripgrep", "jq=1.6-2.1"]`},
		{name: "no package cache", content: "container.package-caches = ['npm', 'yum']", text: `line 1, column 36: there is no package cache "yum"`, hint: `package-caches = ["go", "npm", "pip", "cargo", "maven", "gradle"]`},
		{name: "no build cache", content: "container.build-caches = ['go-build', 'make']", text: `line 1, column 39: there is no build cache "make"`, hint: `build-caches = ["go-build", "ccache", "sccache", "gradle-build"]`},
		{name: "no servers of an editor", content: "editors.cache = ['zed', 'ed']", text: `line 1, column 25: there are no servers of an editor "ed"`, hint: `cache = ["vscode", "cursor", "jetbrains", "zed"]`},
		{name: "a planned key", content: "durability = 'normal'\nproject = 'x'", kind: fault.Unsupported, text: `line 2, column 1: "project" is not supported by this version yet`, hint: `delete "project": it would have no effect`},
		{name: "no runtime", content: "[container]\nruntime = '-x'", text: `line 2, column 11: container.runtime must be a name as docker info lists them, not "-x"`, hint: `runtime = "runsc"`},
		{name: "no base image", content: "[container]\nbase-image = 'docker-daemon:debian'", text: `line 2, column 14: cannot use the base image "docker-daemon:debian": litterbox asks no container engine`, hint: `docker save -o image.tar debian, then base-image = "docker-archive:image.tar"`},
		{name: "a base image that a terminal obeys", content: "container.base-image = \"./a\\u001b[2J\"", text: `line 1, column 24: cannot use the base image "./a\x1b[2J": it holds a control character`, hint: `base-image = "docker.io/library/debian:12"`},
		{name: "a planned key inline", content: "sync = { paths = 4 }", kind: fault.Unsupported, text: `line 1, column 1: "sync" is not supported by this version yet`, hint: `delete "sync": it would have no effect`},
		{name: "a planned key of a section that counts", content: "vm.docker = true", kind: fault.Unsupported, text: `line 1, column 1: "vm.docker" is not supported by this version yet`, hint: `delete "vm.docker": it would have no effect`},

		{name: "a limit that is not a size", content: "[limits]\nmemory = 'much'", text: `line 2, column 10: cannot use "much" for memory: it is not a size`, hint: "memory=4GiB"},
		{name: "a limit below what anything needs", content: "limits.pids = 3", text: `line 1, column 15: cannot use "3" for pids: it is less than 64`, hint: "pids=2000"},
		{name: "a limit that is true", content: "limits.cpus = true", text: `line 1, column 15: limits.cpus must be a number or a string, not a boolean`},
		{name: "a limit without a unit", content: "limits.time = 30", text: `line 1, column 15: cannot use "30" for time: it is not a duration`, hint: "time=30m"},
		{name: "an idle stop that is none", content: "limits.idle-stop = '0s'", text: `line 1, column 20: limits.idle-stop must be a duration of a second or more, or "none", not "0s"`, hint: `idle-stop = "30m"`},
		{name: "an idle pause that is none", content: "limits.idle-pause = '0s'", text: `line 1, column 21: limits.idle-pause must be a duration of a second or more, not "0s"`, hint: `idle-pause = "10m"`},

		{name: "no TOML", content: "[git]\nbranch-prefix = agent/\n", text: "line 2, column 17: unexpected character U+0061 'a' at start of value"},
		{name: "a key twice", content: "durability = 'normal'\ndurability = 'strict'\n", text: "line 2, column 1: key durability is already defined"},
		{
			name:    "everything at once",
			content: "durability = 'x'\ncontianer = 1\n[sync]\npaths = '1d'\n[git]\nbranch-prefix = '-'\n[container]\nenv.'1' = ''\n",
			text: `5 problems
  line 1, column 14: durability must be "normal" or "strict", not "x" (durability = "strict")
  line 2, column 1: unknown key "contianer" (did you mean "container"?)
  line 3, column 2: "sync" is not supported by this version yet (delete "sync": it would have no effect)
  line 6, column 17: git.branch-prefix "-" does not make a branch name: it begins with a dash (branch-prefix = "agent/")
  line 8, column 1: "1" is not a name for an environment variable`,
		},
	}
}

func TestParseErrors(t *testing.T) {
	t.Parallel()
	for _, c := range rejected() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := config.Parse("/repo/.litterbox.toml", []byte(c.content))
			if err == nil {
				t.Fatal("it was accepted")
			}
			if c.kind == "" {
				c.kind = fault.Invalid
			}
			type seen struct {
				Kind       fault.Kind
				Text, Hint string
			}
			want := seen{c.kind, "cannot read /repo/.litterbox.toml: " + c.text, c.hint}
			if diff := cmp.Diff(want, seen{fault.KindOf(err), err.Error(), fault.HintOf(err)}); diff != "" {
				t.Errorf("(- want, + got):\n%s", diff)
			}
			checkError(t, err, strings.Count(c.content, "\n")+1)
		})
	}
}

func TestManyProblemsAreCounted(t *testing.T) {
	t.Parallel()
	_, err := config.Parse("f", []byte(manyKeys(1000)))
	if err == nil || strings.Count(err.Error(), "\n") != 21 || !strings.HasSuffix(err.Error(), "\n  and 980 more") {
		t.Errorf("got %v", err)
	}
}

func manyKeys(count int) string {
	var b strings.Builder
	for i := range count {
		b.WriteString("k" + strings.Repeat("x", i%7) + "-" + strings.Repeat("y", i/7) + " = 1\n")
	}
	return b.String()
}
