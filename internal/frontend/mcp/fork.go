package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

type forkArguments struct {
	Name string `json:"name" jsonschema:"of the new one"`
	At   string `json:"at,omitempty" jsonschema:"step or snapshot to begin with; default now"`
}

func (a forkArguments) check() error {
	return errors.Join(filled("name", a.Name, "name what the new one tries, such as fix-login-2"), shortEnough("name", a.Name, nameMost), shortEnough("at", a.At, nameMost))
}
func (a forkArguments) logged() map[string]any { return map[string]any{"name": a.Name, "at": a.At} }

type forkResult struct {
	Name   string   `json:"name"`
	From   string   `json:"from"`
	Branch string   `json:"branch"`
	Notes  []string `json:"notes"`
}

func (r forkResult) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "forked %s into %s on branch %s\n", r.From, r.Name, r.Branch)
	writeNotes(&b, r.Notes)
	fmt.Fprintf(&b, "calls still go to %s; sandbox-open %s to work there\n", r.From, r.Name)
	return b.String()
}

func runFork(ctx context.Context, c *call, in forkArguments) (forkResult, error) {
	made, err := c.Engine.Fork(ctx, engine.ForkRequest{Dir: c.Dir, Name: c.hold.Name, New: in.Name, At: in.At})
	if err != nil {
		return forkResult{}, err
	}
	if len(made.Forks) != 1 {
		return forkResult{}, fault.New(fault.Internal, "a fork made %d sandboxes", len(made.Forks))
	}
	one := made.Forks[0]
	return forkResult{Name: one.Name, From: c.hold.Name, Branch: one.Branch, Notes: notesOf(made.Notes)}, nil
}
