package mcp

import (
	"context"
	"fmt"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
)

type serviceArguments struct {
	Action  string `json:"action" jsonschema:"start, stop, restart or status"`
	Service string `json:"service,omitempty" jsonschema:"its name; all of them for status when left out"`
}

func (a serviceArguments) check() error {
	switch a.Action {
	case "status":
		return nil
	case "start", "stop", "restart":
		return filled("service", a.Service, "name the service")
	}
	return fmt.Errorf("action is %q and must be start, stop, restart or status", oneLine(a.Action, 40))
}

func (a serviceArguments) logged() map[string]any {
	return map[string]any{"action": a.Action, "service": a.Service}
}

type service struct {
	Name    string `json:"name"`
	State   string `json:"state" jsonschema:"running means ready"`
	Problem string `json:"problem,omitempty"`
}

type serviceResult struct {
	Services []service `json:"services"`
}

func (r serviceResult) text() string {
	if len(r.Services) == 0 {
		return "no services are configured; the human names them in .litterbox.toml under container.services"
	}
	text := ""
	for _, s := range r.Services {
		text += s.Name + ": " + s.State
		if s.Problem != "" {
			text += " (" + s.Problem + ")"
		}
		text += "\n"
	}
	return text
}

func runService(ctx context.Context, c *call, in serviceArguments) (serviceResult, error) {
	request := engine.ServiceRequest{Dir: c.Dir, Name: c.hold.Name, Action: engine.ServiceWish(in.Action)}
	if in.Service != "" {
		request.Services = []string{in.Service}
	}
	done, err := c.Engine.Service(ctx, request)
	if err != nil {
		return serviceResult{}, err
	}
	result := serviceResult{Services: []service{}}
	for _, s := range done.Services {
		result.Services = append(result.Services, service{Name: s.Name, State: string(s.State), Problem: oneLine(s.Problem, 200)})
	}
	return result, nil
}
