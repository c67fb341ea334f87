package config

import (
	"maps"
	"slices"

	"github.com/litterbox-sandbox/litterbox/internal/secret"
	"github.com/litterbox-sandbox/litterbox/internal/service"
)

// Agent is a client of the user's own: an entry of [agents].
type Agent struct {
	Name    string
	Command []string
	Install []string // nil: none
	Allow   []string // rules in the canonical text of egress.Rule
	Secrets []string // names below [secrets] that it requires
}

// Agents are those of the user's file, by name.
type Agents []Agent

// Commands are the commands by name.
func (a Agents) Commands() map[string][]string {
	commands := map[string][]string{}
	for _, agent := range a {
		commands[agent.Name] = agent.Command
	}
	return commands
}

// agentsMeaning documents agents.
const agentsMeaning = `Clients of agents besides those that ` + "`litterbox agent run`" + ` knows, each a table of its own, ` + "`[agents.NAME]`" + `; a table with the name of a known client replaces it.

| key | meaning |
|---|---|
| ` + "`command`" + ` | command and arguments. In the arguments ` + "`{prompt}`, `{model}` and `{project}`" + ` are replaced; without ` + "`{prompt}`" + ` the task is on standard input |
| ` + "`install`" + ` | a command to run inside first if the program is missing |
| ` + "`allow`" + ` | network rules that running it adds, as in network.allow |
| ` + "`secrets`" + ` | names of ` + "`[secrets]`" + ` that it needs: running it allows their hosts, and reports at once which one has no value |

` + "```toml" + `
[agents.mine]
command = ["mine", "--headless"]
allow = ["api.example.com"]
secrets = ["MINE_API_KEY"]
` + "```"

func readAgents(c *Config, t tree) []problem {
	table, ok := t.value.(map[string]any)
	if !ok {
		return t.wrong("[agents.mine]", "agents must be a table of agents")
	}
	var problems []problem
	for _, name := range slices.Sorted(maps.Keys(table)) {
		entry := t.part(name, table[name])
		fields, ok := entry.value.(map[string]any)
		if !ok || !service.ValidName(name) {
			problems = append(problems, entry.wrong("[agents.mine]", "%q must be a table, named with lower-case letters, digits and inner dashes", name)...)
			continue
		}
		r := &nestReader{what: "agents." + name}
		agent := Agent{Name: name}
		for _, field := range slices.Sorted(maps.Keys(fields)) {
			part := entry.part(field, fields[field])
			switch field {
			case "command":
				agent.Command = r.command(part)
			case "install":
				agent.Install = r.command(part)
			case "allow":
				list := value{position: part.place()}
				for _, text := range r.texts(part) {
					list.items = append(list.items, value{position: part.place(), text: text})
				}
				var why []problem
				agent.Allow, why = readAllowed(r.what+".allow", list)
				r.problems = append(r.problems, why...)
			case "secrets":
				for _, one := range r.texts(part) {
					if !secret.ValidName(one) {
						r.wrong(part, "%q is not the name of a secret", one)
						continue
					}
					agent.Secrets = append(agent.Secrets, one)
				}
			default:
				r.wrong(part, "there is no %q: it has command, install, allow and secrets", field)
			}
		}
		if len(agent.Command) == 0 && len(r.problems) == 0 {
			r.wrong(entry, "it needs a command")
		}
		problems = append(problems, r.problems...)
		c.Agents = append(c.Agents, agent)
	}
	return problems
}
