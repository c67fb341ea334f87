package config

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/service"
)

// Port is one entry of container.ports.
type Port struct {
	Name   string
	Inside int // 0: any number
}

// servicesMeaning documents container.services.
const servicesMeaning = `Services: programs that run alongside the commands, such as a database or a development server. Each is a separate table, ` + "`[container.services.NAME]`" + `; a name has lower-case letters, digits, dashes and underscores. They start after container.setup-command and with every later start of the sandbox, until they are stopped. A service of the repository replaces the user's of the same name as a whole.

| key | meaning |
|---|---|
| ` + "`command`" + ` | command and arguments; it has to stay in the foreground. It runs in the project directory, with the environment of every command |
| ` + "`env`" + ` | further environment variables |
| ` + "`ready`" + ` | how to tell that it is ready: ` + "`{ port = 5432 }`" + `, ` + "`{ port = \"web\" }`" + ` for a name of container.ports, ` + "`{ file = \"run/ready\" }`" + ` or ` + "`{ command = [\"pg_isready\"] }`" + `; ` + "`timeout`" + ` is "60s" unless set. Without it a service is ready once it has run for a quarter of a second |
| ` + "`needs`" + ` | services that must be ready before it starts, for example ["db"]; it ends before they do |
| ` + "`restart`" + ` | "always" (unless set), "on-failure" or "never": what happens when it ends by itself. The pause before a restart grows from a quarter of a second to half a minute |
| ` + "`signals`" + ` | ` + "`{ stop = \"SIGINT\", restart = \"SIGHUP\" }`" + `: what ends it, SIGTERM unless set, and what ` + "`litterbox service NAME restart`" + ` sends to it. Without a restart signal it is stopped and started |
| ` + "`stop-timeout`" + ` | how long it may take to end before it is killed, "5s" unless set |
| ` + "`autostart`" + ` | false: it starts on request only |

` + "```toml" + `
[container.services.db]
command = ["postgres", "-D", "/tmp/db", "-k", "/tmp"]
ready = { command = ["pg_isready", "-h", "/tmp"] }
signals = { stop = "SIGINT" }

[container.services.web]
command = ["sh", "-c", "exec npm run dev -- --port $PORT_WEB"]
ready = { port = "web" }
needs = ["db"]
` + "```"

func readServices(c *Config, t tree) []problem {
	table, ok := t.value.(map[string]any)
	if !ok {
		return t.wrong("[container.services.web]", "container.services must be a table of services")
	}
	var problems []problem
	for _, name := range slices.Sorted(maps.Keys(table)) {
		entry := t.part(name, table[name])
		if !service.ValidName(name) {
			problems = append(problems, entry.wrong("", "%q is not a name for a service: lower-case letters, digits and inner dashes or underscores, 32 at most", name)...)
			continue
		}
		fields, ok := entry.value.(map[string]any)
		if !ok {
			problems = append(problems, entry.wrong("[container.services."+name+"]", "service %q must be a table", name)...)
			continue
		}
		r := &nestReader{what: "container.services." + name}
		spec := readService(r, entry, name, fields)
		problems = append(problems, r.problems...)
		c.Container.Services = append(c.Container.Services, spec)
	}
	if _, err := service.Order(c.Container.Services); err != nil && len(problems) == 0 {
		problems = t.wrong("", "%s", err.Error())
	}
	return problems
}

func readService(r *nestReader, t tree, name string, fields map[string]any) service.Spec {
	spec := service.Spec{Name: name, Autostart: true}
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		part := t.part(field, fields[field])
		switch field {
		case "command":
			spec.Command = r.command(part)
		case "env":
			spec.Env = r.environment(part)
		case "ready":
			spec.Ready = readReady(r, part)
		case "needs":
			for _, need := range r.texts(part) {
				if !service.ValidName(need) {
					r.wrong(part, "%q is not a name for a service", need)
				}
				spec.Needs = append(spec.Needs, need)
			}
		case "restart":
			spec.Restart = service.Restart(r.text(part))
			if !slices.Contains([]service.Restart{service.Always, service.OnFailure, service.Never}, spec.Restart) {
				r.wrong(part, `restart must be "always", "on-failure" or "never"`)
			}
		case "signals":
			for key, value := range r.table(part, `{ stop = "SIGINT" }`) {
				signal := r.signal(part.part(key, value))
				switch key {
				case "stop":
					spec.Signals.Stop = signal
				case "restart":
					spec.Signals.Restart = signal
				default:
					r.wrong(part.part(key, value), "signals are stop and restart, not %q", key)
				}
			}
		case "stop-timeout":
			spec.Grace = r.duration(part, 5*time.Minute)
		case "autostart":
			spec.Autostart = r.truth(part)
		default:
			r.wrong(part, "unknown key %q", field)
		}
	}
	if len(spec.Command) == 0 && len(r.problems) == 0 {
		r.wrong(t, "command is missing")
	}
	return spec
}

func readReady(r *nestReader, t tree) service.Ready {
	var ready service.Ready
	fields := r.table(t, "{ port = 5432 }")
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		part := t.part(field, fields[field])
		switch field {
		case "port":
			if name, ok := part.value.(string); ok {
				ready.Named = name
				if !validPortName(name) {
					r.wrong(part, "%q is not a name of container.ports", name)
				}
			} else {
				ready.Port = r.port(part)
			}
		case "file":
			if ready.File = r.text(part); ready.File == "" {
				r.wrong(part, "file must name one")
			}
		case "command":
			ready.Command = r.command(part)
		case "timeout":
			ready.Timeout = r.duration(part, time.Hour)
		default:
			r.wrong(part, "unknown key %q", field)
		}
	}
	ways := 0
	for _, set := range []bool{ready.Port != 0 || ready.Named != "", ready.File != "", len(ready.Command) > 0} {
		if set {
			ways++
		}
	}
	if ways != 1 && len(r.problems) == 0 {
		r.wrong(t, "ready needs exactly one of port, file and command")
	}
	return ready
}

// mergeServices puts services above others, one by one.
func mergeServices(base, over []service.Spec) []service.Spec {
	merged := slices.Clone(base)
	for _, s := range over {
		merged = slices.DeleteFunc(merged, func(b service.Spec) bool { return b.Name == s.Name })
		merged = append(merged, s)
	}
	slices.SortFunc(merged, func(a, b service.Spec) int { return strings.Compare(a.Name, b.Name) })
	return merged
}
