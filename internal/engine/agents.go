package engine

import (
	"context"

	"github.com/litterbox-sandbox/litterbox/internal/agents"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/ownership"
)

// The words about agents' clients; see package agents.
type (
	AgentRequest   = agents.Request
	AgentResult    = agents.Result
	AgentChange    = agents.Change
	AgentStep      = agents.Step
	AgentStatus    = agents.Status
	AgentInstalled = agents.Installed
	AgentScope     = agents.Scope
)

// AgentNames lists the clients that litterbox knows.
func AgentNames() []string { return agents.Names() }

// InstallAgents puts litterbox into the settings of agents' clients.
func (e *Engine) InstallAgents(ctx context.Context, dir string, r AgentRequest) (AgentResult, error) {
	return e.changeAgents(ctx, "agent-install", dir, r, agents.Host.Install)
}

// UninstallAgents takes litterbox out of them.
func (e *Engine) UninstallAgents(ctx context.Context, dir string, r AgentRequest) (AgentResult, error) {
	return e.changeAgents(ctx, "agent-uninstall", dir, r, agents.Host.Uninstall)
}

func (e *Engine) changeAgents(ctx context.Context, action, dir string, r AgentRequest, change func(agents.Host, context.Context, agents.Request) (agents.Result, error)) (result AgentResult, err error) {
	host, err := agents.ThisHost(callerOf(ctx), e.Store.Root)
	if err != nil {
		return AgentResult{}, err
	}
	if r.Repository, err = checkout(ctx, dir); err != nil && r.Scope == agents.Project {
		return AgentResult{}, err
	}
	if r.Print {
		return change(host, ctx, r)
	}
	if r.Scope == agents.Project {
		if err := ownership.ForRoot(r.Repository); err != nil {
			return AgentResult{}, fault.Wrap(fault.Denied, err, "cannot change the files of a repository")
		}
	}
	ctx, call, err := e.record(ctx, action, dir, "", map[string]any{
		"names": r.Names, "all": r.All, "scope": string(r.Scope), "exclusive": r.Exclusive, "rules": r.Rules, "force": r.Force,
	})
	if err != nil {
		return AgentResult{}, err
	}
	defer func() { err = call.end("", nil, err) }()
	return change(host, ctx, r)
}

// Agents tells which clients are here, and where litterbox is installed.
func (e *Engine) Agents(ctx context.Context, dir string) ([]AgentStatus, error) {
	host, err := agents.ThisHost(callerOf(ctx), e.Store.Root)
	if err != nil {
		return nil, err
	}
	top, _ := checkout(ctx, dir) // outside of a repository there are the user's settings
	return host.List(top), nil
}

// checkout is the top directory of the checkout that dir is in.
func checkout(ctx context.Context, dir string) (string, error) {
	if location, ok := git.Locate(dir); ok {
		return location.Top, nil
	}
	repo, err := git.Open(ctx, dir)
	if err != nil {
		return "", err
	}
	return repo.Top, nil
}
