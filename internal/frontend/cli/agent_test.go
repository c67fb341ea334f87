package cli_test

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/frontend/cli"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// agentFake is an engine that installs agents.
type agentFake struct {
	cli.UseCases
	change func(engine.AgentRequest) (engine.AgentResult, error)
	agents []engine.AgentStatus
}

func (f *agentFake) InstallAgents(_ context.Context, _ string, r engine.AgentRequest) (engine.AgentResult, error) {
	return f.change(r)
}

func (f *agentFake) UninstallAgents(_ context.Context, _ string, r engine.AgentRequest) (engine.AgentResult, error) {
	return f.change(r)
}

func (f *agentFake) AgentLogins(context.Context, string) (map[string]engine.AgentLogin, error) {
	return map[string]engine.AgentLogin{"claude": {Version: "2.1", Login: "ANTHROPIC_API_KEY"}, "codex": {Missing: "no API key"},
		"mine": {At: "/opt/mine", Login: "MINE_KEY", Own: true}, "other": {Missing: "other is not installed", Own: true}}, nil
}

func (f *agentFake) Runs(context.Context, string, string) ([]engine.Run, error) { return nil, nil }

func (f *agentFake) Agents(context.Context, string) ([]engine.AgentStatus, error) {
	return f.agents, nil
}

func TestAgentInstall(t *testing.T) {
	var got engine.AgentRequest
	result := engine.AgentResult{
		Changes: []engine.AgentChange{
			{Agent: "claude", Scope: "project", File: ".mcp.json", Action: "created", Lines: []string{"+{", "+}\x1b[31m"}},
			{Agent: "claude", Scope: "project", File: "CLAUDE.md", Action: "unchanged", Lines: []string{}},
		},
		Next:  []engine.AgentStep{{Agent: "claude", Steps: []string{"restart claude", "look"}}},
		Notes: []string{"a note"},
	}
	var problem error
	e := &agentFake{change: func(r engine.AgentRequest) (engine.AgentResult, error) {
		got = r
		return result, problem
	}}
	wantOutcome(t, lb(t, e, "", "agent", "install", "claude", "--exclusive", "--rules", "--force", "--scope", "project"), outcome{
		0, "claude: .mcp.json created\nclaude: CLAUDE.md unchanged\nnext for claude: restart claude\n                 look\n", "note: a note\n",
	})
	want := engine.AgentRequest{Names: []string{"claude"}, Scope: "project", Exclusive: true, Rules: true, Force: true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
	wantOutcome(t, lb(t, e, "", "agent", "install", "--all", "--print"), outcome{
		0, "claude: .mcp.json would be created\n  +{\n  +}\n", "note: a note\n",
	})
	golden(t, "json/agent-install.json", lb(t, e, "", "agent", "uninstall", "claude", "--json").Stdout)

	problem = fault.New(fault.Unsupported, "cannot do it for one")
	wantOutcome(t, lb(t, e, "", "agent", "uninstall", "--all"), outcome{
		6, "claude: .mcp.json created\nclaude: CLAUDE.md unchanged\nnext for claude: restart claude\n                 look\n",
		"note: a note\nlitterbox: cannot do it for one\n",
	})
	result = engine.AgentResult{}
	wantOutcome(t, lb(t, e, "", "agent", "install", "goose", "--json"), outcome{6, "", "litterbox: cannot do it for one\n"})
	for _, args := range [][]string{{"install"}, {"install", "claude", "--all"}, {"uninstall"}, {"install", "claude", "--scope", "all"}, {"instal", "claude"}, {"list", "claude"}} {
		if out := lb(t, nil, "", append([]string{"agent"}, args...)...); out.Code != 2 || out.Stdout != "" {
			t.Errorf("%q: %+v", args, out)
		}
	}
}

func TestAgentList(t *testing.T) {
	e := &agentFake{agents: []engine.AgentStatus{
		{Agent: "claude", Title: "Claude Code", Found: true, At: "/usr/bin/claude", Denies: true, Installed: []engine.AgentInstalled{
			{Scope: "project", File: ".mcp.json", State: "installed", Exclusive: true, Rules: true},
			{Scope: "user", File: "/home/u/.claude.json", State: "broken", Problem: "line 1"},
		}},
		{Agent: "goose", Title: "Goose", Installed: []engine.AgentInstalled{}},
	}}
	wantOutcome(t, lb(t, e, "", "agent", "list"), outcome{0, `AGENT   CLIENT       HERE  INSTALLED      EXCLUSIVE  RULES  FILE
claude  Claude Code  yes   project        yes        yes    .mcp.json
                           user (broken)  no         no     /home/u/.claude.json
goose   Goose        no    no             -          -      -
mine    your own     yes   -              -          -      -
other   your own     no    -              -          -      -

INSIDE  VERSION  LOGIN              MISSING
claude  2.1      ANTHROPIC_API_KEY  -
mine    -        MINE_KEY           -
other   -        -                  other is not installed
`, "note: line 1\n"})
	golden(t, "json/agent-list.json", lb(t, e, "", "agent", "list", "--json").Stdout)
}

func TestAgentCompletion(t *testing.T) {
	if got := lb(t, nil, "", "__complete", "agent", "install", "codex", "c"); got.Stdout != "claude\ncursor\n:4\n" {
		t.Errorf("%+v", got)
	}
	if got := lb(t, nil, "", "__complete", "agent", "uninstall", "--scope", "p"); got.Stdout != "project\nuser\n:4\n" && got.Stdout != "project\n:4\n" {
		t.Errorf("%+v", got)
	}
}

// screenFake has one run, of a full-screen interface.
type screenFake struct {
	cli.UseCases
	run engine.Run
}

func (f *screenFake) LastRun(context.Context, string, string) (engine.Run, error) { return f.run, nil }

func (f *screenFake) FollowAgent(context.Context, engine.Run, bool, func(engine.RunLine) error) (engine.Run, error) {
	return f.run, nil
}

func (f *screenFake) RunOutput(_ engine.Run, to io.Writer) error {
	_, err := io.WriteString(to, "\x1b[2Jhello\n")
	return err
}

func TestAgentLogsOfAScreen(t *testing.T) {
	e := &screenFake{run: engine.Run{Sandbox: "fix", Screen: true, State: sandbox.RunCompleted}}
	if got := lb(t, e, "", "agent", "logs", "fix", "--json"); got.Code != 0 || !strings.HasPrefix(got.Stdout, `{"kind":"ended","run":{`) || strings.Contains(got.Stdout, "hello") {
		t.Errorf("as JSON: %+v", got)
	}
	if got := lb(t, e, "", "agent", "logs", "fix"); !strings.Contains(got.Stdout, "hello") || got.Stderr != "" {
		t.Errorf("as text: %+v", got)
	}
	e.run.State = sandbox.RunWorking
	if got := lb(t, e, "", "agent", "logs", "fix", "--follow"); !strings.Contains(got.Stderr, "litterbox agent attach fix") {
		t.Errorf("while it works: %+v", got)
	}
}
