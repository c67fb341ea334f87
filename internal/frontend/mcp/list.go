package mcp

import (
	"context"
	"fmt"
	"strings"
)

type noArguments struct{}

func (noArguments) check() error           { return nil }
func (noArguments) logged() map[string]any { return nil }

type listed struct {
	Name    string `json:"name"`
	State   string `json:"state"`
	Branch  string `json:"branch"`
	Steps   int    `json:"steps" jsonschema:"commits so far"`
	Agent   string `json:"agent" jsonschema:"who works there; may be empty"`
	Mine    bool   `json:"mine" jsonschema:"this session works there"`
	Ports   []port `json:"ports,omitempty"`
	Problem string `json:"problem,omitempty"`
}

type listResult struct {
	Sandboxes []listed `json:"sandboxes"`
}

func (r listResult) text() string {
	if len(r.Sandboxes) == 0 {
		return "no sandboxes yet; sandbox-create makes one"
	}
	var b strings.Builder
	for _, s := range r.Sandboxes {
		fmt.Fprintf(&b, "%s: %s, branch %s, %d steps", s.Name, s.State, s.Branch, s.Steps)
		switch {
		case s.Mine:
			b.WriteString(", this session works there")
		case s.Agent != "":
			fmt.Fprintf(&b, ", %s works there", s.Agent)
		}
		if s.Problem != "" {
			fmt.Fprintf(&b, " (%s)", s.Problem)
		}
		b.WriteByte('\n')
		for _, p := range s.Ports {
			fmt.Fprintf(&b, "  port %s\n", p.line())
		}
	}
	return b.String()
}

func runList(ctx context.Context, c *call, _ noArguments) (listResult, error) {
	infos, err := c.Engine.List(ctx, c.Dir, false)
	if err != nil {
		return listResult{}, err
	}
	out := listResult{Sandboxes: []listed{}}
	for _, info := range infos {
		one := listed{
			Name: info.Name, State: string(info.State), Branch: info.Branch, Steps: info.Iterations, Problem: printable(info.Problem),
		}
		// A sandbox that cannot tell now, or was just deleted, lists none.
		one.Ports, _ = c.ports(ctx, info.Name)
		if agent := info.Agent; agent != nil {
			one.Mine = agent.Session == c.session.id
			if one.Agent = strings.TrimSpace(printable(agent.Client + " " + agent.ClientVersion)); one.Agent == "" {
				one.Agent = "an agent"
			}
		}
		out.Sandboxes = append(out.Sandboxes, one)
	}
	return out, nil
}
