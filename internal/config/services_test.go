package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/caller"
	"github.com/litterbox-sandbox/litterbox/internal/config"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/service"
)

const completeServices = `
[container.services.db]
command = ["postgres", "-D", "/tmp/db"]
env = { PGPORT = "5432" }
ready = { command = ["pg_isready"], timeout = "2m" }
restart = "on-failure"
signals = { stop = "SIGINT", restart = "HUP" }
stop-timeout = "30s"
autostart = false
`

func TestServices(t *testing.T) {
	t.Parallel()
	db := service.Spec{
		Name: "db", Command: []string{"postgres", "-D", "/tmp/db"}, Env: map[string]string{"PGPORT": "5432"},
		Ready: service.Ready{Command: []string{"pg_isready"}, Timeout: 2 * time.Minute}, Restart: service.OnFailure,
		Signals: service.Signals{Stop: "INT", Restart: "HUP"}, Grace: 30 * time.Second,
	}
	small := service.Spec{Name: "a", Command: []string{"b"}, Autostart: true}
	ready := func(r service.Ready) service.Spec { s := small; s.Ready = r; return s }
	for content, want := range map[string][]service.Spec{
		completeServices:                                                                    {db},
		`container.services = {}`:                                                           nil,
		`container.services.a.command = ["b"]`:                                              {small},
		`container = { services = { a = { command = ["b"] } } }`:                            {small},
		"[container]\nservices = { a = { command = ['b'] } }":                               {small},
		"[container.services]\na.command = ['b']\nz = { command = ['y'] }":                  {small, {Name: "z", Command: []string{"y"}, Autostart: true}},
		"[container.services.a]\ncommand = ['b']\nready = { port = 80 }":                    {ready(service.Ready{Port: 80})},
		"[container.services.a]\ncommand = ['b']\nready.port = 'web'":                       {ready(service.Ready{Named: "web"})},
		"[container.services.a]\ncommand = ['b']\n[container.services.a.ready]\nfile = 'x'": {ready(service.Ready{File: "x"})},
	} {
		if diff := cmp.Diff(want, parse(t, "f", content).Container.Services); diff != "" {
			t.Errorf("%s (- want, + got):\n%s", content, diff)
		}
	}
}

func TestPorts(t *testing.T) {
	t.Parallel()
	for content, want := range map[string][]config.Port{
		`container.ports = ["web", "api"]`:             {{Name: "api"}, {Name: "web"}},
		`container.ports = { web = 3000, api = 0 }`:    {{Name: "api"}, {Name: "web", Inside: 3000}},
		"[container.ports]\nweb = 3000":                {{Name: "web", Inside: 3000}},
		"[container]\nports.web = 3000\nports.api = 1": {{Name: "api", Inside: 1}, {Name: "web", Inside: 3000}},
	} {
		if diff := cmp.Diff(want, parse(t, "f", content).Container.Ports); diff != "" {
			t.Errorf("%s (- want, + got):\n%s", content, diff)
		}
	}
}

// Each error names the problem, and its place.
func TestServiceErrors(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]string{
		`container.services = 3`:                                             "line 1, column 1: container.services must be a table of services",
		"[[container.services]]\ncommand = ['a']":                            "line 1, column 3: container.services must be a table of services",
		"[[container.services.a]]\ncommand = ['a']":                          `line 1, column 3: service "a" must be a table`,
		"[container.services.A]\ncommand = ['a']":                            `line 1, column 2: "A" is not a name for a service`,
		"[container.services.'../x']\ncommand = ['a']":                       `line 1, column 2: "../x" is not a name for a service`,
		"[container.services.a]":                                             `line 1, column 2: container.services.a: command is missing`,
		"[container.services.a]\ncommand = 'a b'":                            `line 2, column 1: container.services.a: command must be a list of strings`,
		"[container.services.a]\ncommand = []":                               `line 2, column 1: container.services.a: command is empty`,
		"[container.services.a]\ncommand = [['a']]":                          `line 2, column 1: container.services.a: every element of command must be a string`,
		"[container.services.a]\ncommand = ['a']\ncomand = 1":                `line 3, column 1: container.services.a: unknown key "comand"`,
		"[container.services.a]\ncommand = ['a']\nready = 'tcp:80'":          `line 3, column 1: container.services.a: ready must be a table such as { port = 5432 }`,
		"[container.services.a]\ncommand = ['a']\nsignals = 'INT'":           `line 3, column 1: container.services.a: signals must be a table such as { stop = "SIGINT" }`,
		"[container.services.a]\ncommand = ['a']\nready = {}":                `line 3, column 1: container.services.a: ready needs exactly one of port, file and command`,
		"[container.services.a]\ncommand=['a']\nready={port=99999}":          `line 3, column 8: container.services.a: port must be a port from 1 to 65535`,
		"[container.services.a]\ncommand=['a']\nready={port='A b'}":          `line 3, column 8: container.services.a: "A b" is not a name of container.ports`,
		"[container.services.a]\ncommand=['a']\nready={port=1,file='a'}":     `line 3, column 1: container.services.a: ready needs exactly one`,
		"[container.services.a]\ncommand=['a']\nready={port=1,timeout='1y'}": `line 3, column 15: container.services.a: timeout must be a time`,
		"[container.services.a]\ncommand=['a']\nrestart='maybe'":             `line 3, column 1: container.services.a: restart must be`,
		"[container.services.a]\ncommand=['a']\nsignals={stop='SIGFOO'}":     `line 3, column 10: container.services.a: stop must be a signal`,
		"[container.services.a]\ncommand=['a']\nsignals={stopp='SIGINT'}":    `line 3, column 10: container.services.a: signals are stop and restart, not "stopp"`,
		"[container.services.a]\ncommand=['a']\nenv={'1'='a'}":               `line 3, column 6: "1" is not a name for an environment variable`,
		"[container.services.a]\ncommand=['a']\nstop-timeout='-1s'":          `line 3, column 1: container.services.a: stop-timeout must be a time`,
		"[container.services.a]\ncommand=['a']\nautostart='no'":              `line 3, column 1: container.services.a: autostart must be true or false`,
		"[container.services.a]\ncommand=['a']\nneeds=['a']":                 `line 1, column 2: cannot order the services: a needs a`,
		`container.ports = "web"`:                                            "line 1, column 1: container.ports: must be a list",
		`container.ports = [3000]`:                                           "line 1, column 1: container.ports: every element must be a string",
		`container.ports = ["web", "web"]`:                                   `line 1, column 1: container.ports: "web" is listed twice`,
		`container.ports = ["web=3000"]`:                                     `"web=3000" is not a name for a port: lower-case letters, digits and inner dashes, 32 at most; a table such as { web = 3000 } gives the number inside`,
		`container.ports = ["my_web"]`:                                       `line 1, column 1: container.ports: "my_web" is not a name for a port`,
		"[container.ports]\nweb = 70000":                                     `line 2, column 1: container.ports: web must be a port from 1 to 65535`,
		`container.ports-listen = "everywhere"`:                              `line 1, column 26: container.ports-listen must be an address of this machine`,
	} {
		_, err := config.Parse("f", []byte(content))
		if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", content, err, want)
		}
	}
}

// Only the human decides what runs as an agent, and what models cost.
func TestTablesThatAreNotForRepositories(t *testing.T) {
	for content, want := range map[string]string{
		"driver = \"namespace\"\n[agents.mine]\ncommand = [\"sh\"]\n": "line 2, column 2: agents has an effect only in your own configuration",
		"agents.mine.command = [\"sh\"]\n":                            "line 1, column 1: agents has an effect only in your own configuration",
		"[cost.prices.\"my-model\"]\ninput = 1\noutput = 1\n":         "line 1, column 2: cost.prices has an effect only in your own configuration",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, config.RepositoryFile), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := config.Load(dir)
		if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", content, err)
		}
	}
}

// Only the human decides where forwarded ports listen.
func TestPortsListenIsNotForRepositories(t *testing.T) {
	const content = "[container]\nports-listen = \"0.0.0.0\"\n"
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, config.RepositoryFile), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := config.Load(dir)
	if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "line 2, column 1: container.ports-listen has an effect only in your own configuration") {
		t.Errorf("from a repository: %v", err)
	}
	who := &caller.Caller{Env: []string{"XDG_CONFIG_HOME=" + dir}}
	if err := os.MkdirAll(filepath.Join(dir, "litterbox"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "litterbox", "config.toml"), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err := config.LoadUser(who); err != nil || c.Container.PortsListen != "0.0.0.0" {
		t.Errorf("from the user: %+v, %v", c, err)
	}
	// Nor can it come in by another way.
	merged, _ := config.Merge(config.Config{}, parse(t, "f", content), true)
	if merged.Container.PortsListen != "" {
		t.Error("merged from a repository")
	}
}

// The example of the reference page must be accepted.
func TestServiceExample(t *testing.T) {
	t.Parallel()
	page := config.Document()
	_, example, _ := strings.Cut(page, "[container.services.db]")
	example, _, _ = strings.Cut(example, "```")
	if c := parse(t, "example", "[container.services.db]"+example); len(c.Container.Services) != 2 {
		t.Errorf("%+v", c.Container.Services)
	}
}
