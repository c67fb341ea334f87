package engine

import (
	"context"
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/agents"
	"github.com/litterbox-sandbox/litterbox/internal/config"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/profile"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// CheckAgent checks what a task asks for before a sandbox is made for it: the
// client and the budget.
func (e *Engine) CheckAgent(ctx context.Context, task AgentTask) error {
	own, err := e.ownAgents(ctx, task.Dir)
	if err != nil {
		return err
	}
	if _, err := clientOf(own, task.Client); err != nil {
		return err
	}
	if task.Budget != "" {
		_, err = sandbox.Limits{}.Parse(sandbox.LimitBudget, task.Budget)
	}
	return err
}

// InsideAgents are the clients that a task can name: those that are built in and
// the user's own.
func (e *Engine) InsideAgents(ctx context.Context, dir string) ([]string, error) {
	own, err := e.ownAgents(ctx, dir)
	return clientNames(own), err
}

// ownAgents are the clients of the configuration that counts in a directory.
func (e *Engine) ownAgents(ctx context.Context, dir string) (config.Agents, error) {
	top, err := checkout(ctx, dir)
	if err != nil {
		return nil, err
	}
	gitDir, err := gitDirOf(ctx, dir)
	if err != nil {
		return nil, err
	}
	found, err := e.settings(ctx, top, gitDir)
	return found.config.Agents, err
}

// clientNames are the clients that are built in, then those of own.
func clientNames(own config.Agents) []string {
	names := profile.Names()
	for _, one := range own {
		if !slices.Contains(names, one.Name) {
			names = append(names, one.Name)
		}
	}
	return names
}

// clientOf finds a profile: one of own, or one that is built in.
func clientOf(own config.Agents, name string) (profile.Profile, error) {
	for _, one := range own {
		if one.Name == name {
			return profile.Own(one.Name, one.Command, one.Install, one.Allow, one.Secrets), nil
		}
	}
	if found, ok := profile.ByName(name); ok {
		return found, nil
	}
	known := clientNames(own)
	err := fault.New(fault.Invalid, "there is no agent %q: known are %s", name, strings.Join(known, ", "))
	if near := agents.Nearest(name, known); near != "" {
		return profile.Profile{}, err.WithHint("litterbox agent run %s PROMPT", near)
	}
	return profile.Profile{}, err.WithHint("litterbox agent run %s PROMPT", known[0])
}
