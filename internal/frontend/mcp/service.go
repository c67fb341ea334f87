package mcp

import (
	"context"
	"fmt"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
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
	Name  string `json:"name"`
	State string `json:"state"`
}

type serviceResult struct {
	Services []service `json:"services"`
}

func (r serviceResult) text() string {
	text := ""
	for _, s := range r.Services {
		text += s.Name + ": " + s.State + "\n"
	}
	return text
}

// runService is where the supervisor of services comes in: ask the engine here,
// through a method in [UseCases], and fill serviceResult.
func runService(context.Context, *call, serviceArguments) (serviceResult, error) {
	return serviceResult{}, fault.New(fault.Unsupported, "this version of litterbox has no services").
		WithHint("start a program in the background with sandbox-exec, such as: npm run dev >/tmp/dev.log 2>&1 &")
}
