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
// client, the secrets that it requires, and the budget. It returns the names of the
// secrets that have a value, for [AgentTask].
func (e *Engine) CheckAgent(ctx context.Context, task AgentTask) (secrets []string, err error) {
	found, err := e.settingsAt(ctx, task.Dir)
	if err != nil {
		return nil, err
	}
	client, err := clientOf(found.config.Agents, task.Client)
	if err != nil {
		return nil, err
	}
	if task.Budget != "" {
		if _, err := (sandbox.Limits{}).Parse(sandbox.LimitBudget, task.Budget); err != nil {
			return nil, err
		}
	}
	if slices.Contains(found.withheld, "secrets") { // making the sandbox may ask for trust
		return nil, nil
	}
	return haveSecrets(ctx, found.config.Secrets, client, nil)
}

// InsideAgents are the clients that a task can name: those that are built in and
// the user's own.
func (e *Engine) InsideAgents(ctx context.Context, dir string) ([]string, error) {
	found, err := e.settingsAt(ctx, dir)
	return clientNames(found.config.Agents), err
}

// settingsAt is the configuration that counts in a directory of a checkout.
func (e *Engine) settingsAt(ctx context.Context, dir string) (settings, error) {
	top, err := checkout(ctx, dir)
	if err != nil {
		return settings{}, err
	}
	gitDir, err := gitDirOf(ctx, dir)
	if err != nil {
		return settings{}, err
	}
	return e.settings(ctx, top, gitDir)
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
