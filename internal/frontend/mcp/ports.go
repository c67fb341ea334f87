package mcp

import (
	"context"
	"fmt"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
)

// port is a forwarded port of a sandbox.
type port struct {
	Name   string `json:"name"`
	Inside int    `json:"inside" jsonschema:"where a server inside has to listen"`
	URL    string `json:"url,omitempty" jsonschema:"where a human outside finds it"`
}

func (p port) line() string {
	text := fmt.Sprintf("%s: listen on %d inside", oneLine(p.Name, 100), p.Inside)
	if p.URL != "" {
		text += "; outside it is " + oneLine(p.URL, 300)
	}
	return text
}

// ports are those of the sandbox called name.
func (c *call) ports(ctx context.Context, name string) ([]port, error) {
	ports, err := c.Engine.Ports(ctx, c.Dir, name)
	return portsOf(ports), err
}

func portsOf(ports []engine.Port) []port {
	var all []port
	for _, p := range ports {
		all = append(all, port{Name: p.Name, Inside: p.Inside, URL: p.URL})
	}
	return all
}
