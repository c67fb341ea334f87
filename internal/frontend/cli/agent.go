package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
)

type agentOptions struct {
	console *console
	change  func(ctx context.Context, dir string, r engine.AgentRequest) (engine.AgentResult, error)
	list    func(ctx context.Context, dir string) ([]engine.AgentStatus, error)
	runs    func(ctx context.Context, dir, name string) ([]engine.Run, error)
	logins  func(ctx context.Context, dir string) (map[string]engine.AgentLogin, error)

	dir     string
	request engine.AgentRequest
	scope   string
	json    bool
}

func newAgent(s *session) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Run agents in sandboxes",
		Long: `Run your agents inside sandboxes, or add litterbox to their settings, so that they
work in sandboxes from outside.`,
		Example: `  litterbox agent run claude 'Fix the flaky login test'
  litterbox agent list
  litterbox agent install claude --exclusive --rules
  litterbox agent uninstall claude`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return usageError(cmd, "%q is not one of attach, install, list, logs, resume, run, uninstall", args[0])
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newAgentRun(s), newAgentResume(s), newAgentAttach(s), newAgentLogs(s), newAgentInstall(s), newAgentList(s), newAgentUninstall(s))
	return cmd
}

func newAgentInstall(s *session) *cobra.Command {
	o := &agentOptions{console: s.console}
	cmd := &cobra.Command{
		Use:   "install NAME...|--all",
		Short: "Let agents use litterbox",
		Long: `Write litterbox into the list of MCP servers of agents' clients: ` + strings.Join(engine.AgentNames(), ", ") + `.
Everything else in their files stays as it is.

With --exclusive the client's own permissions are written too, so that its own
tools cannot run commands or change files: rules alone isolate nothing. If a client
has no such settings, a message names it, and the exit code is 6.`,
		Example: `  litterbox agent install claude --exclusive --rules
  litterbox agent install --all --print
  litterbox agent install codex --scope user`,
		Args: wantArgs(0, -1),
	}
	o.flags(cmd)
	f := cmd.Flags()
	f.BoolVar(&o.request.Exclusive, "exclusive", false, "deny the client's own tools that run commands or change files")
	f.BoolVar(&o.request.Rules, "rules", false, "append a few rules for the model to CLAUDE.md, AGENTS.md or GEMINI.md")
	f.Lookup("all").Usage = "every client that is found on this machine"
	f.Lookup("force").Usage = "replace what others have written there"
	cmd.ValidArgsFunction = completeAgents
	cmd.RunE = o.action(s, func(e useCases) { o.change = e.InstallAgents })
	return cmd
}

func newAgentUninstall(s *session) *cobra.Command {
	o := &agentOptions{console: s.console}
	cmd := &cobra.Command{
		Use:   "uninstall NAME...|--all",
		Short: "Take litterbox out again",
		Long: `Remove litterbox from the settings of agents' clients, with the permissions and
rules that it wrote. A file that has not changed since is restored exactly.`,
		Example: `  litterbox agent uninstall claude
  litterbox agent uninstall --all --scope user`,
		Args: wantArgs(0, -1),
	}
	o.flags(cmd)
	cmd.ValidArgsFunction = completeAgents
	cmd.RunE = o.action(s, func(e useCases) { o.change = e.UninstallAgents })
	return cmd
}

func (o *agentOptions) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&o.request.All, "all", false, "every client")
	f.StringVar(&o.scope, "scope", "", "project or user: the repository's settings or yours\n(default: project, where the client has that)")
	f.BoolVar(&o.request.Force, "force", false, "also remove what others have written there")
	f.BoolVar(&o.request.Print, "print", false, "only show what would change")
	f.BoolVar(&o.json, "json", false, "print one JSON object")
	scopes := cobra.FixedCompletions([]cobra.Completion{"project", "user"}, cobra.ShellCompDirectiveNoFileComp)
	_ = cmd.RegisterFlagCompletionFunc("scope", scopes) // fails for a flag that is not there
}

// completeAgents completes names that are not typed yet.
func completeAgents(_ *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var found []cobra.Completion
	for _, name := range engine.AgentNames() {
		if strings.HasPrefix(name, toComplete) && !slices.Contains(args, name) {
			found = append(found, name)
		}
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}

// action checks what was typed and runs the change.
func (o *agentOptions) action(s *session, bind func(useCases)) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case o.request.All == (len(args) > 0):
			return usageError(cmd, "give names of agents (%s) or --all", strings.Join(engine.AgentNames(), ", "))
		case !slices.Contains([]string{"", "project", "user"}, o.scope):
			return usageError(cmd, "--scope %q is not one of project, user", o.scope)
		}
		o.request.Names = args
		return s.action(func(ctx context.Context, e useCases, dir string, _ []string) error {
			bind(e)
			o.dir = dir
			return runAgentChange(ctx, o)
		})(cmd, args)
	}
}

func runAgentChange(ctx context.Context, o *agentOptions) error {
	o.request.Scope = engine.AgentScope(o.scope)
	result, problem := o.change(ctx, o.dir, o.request)
	if problem != nil && len(result.Changes) == 0 {
		return problem
	}
	if o.json {
		result.Changes, result.Next, result.Notes = list(result.Changes), list(result.Next), list(result.Notes)
		if err := o.console.document(result); err != nil {
			return err
		}
		return problem
	}
	if err := printAgentChanges(o.console, result, o.request.Print); err != nil {
		return err
	}
	o.console.notes(result.Notes)
	return problem
}

func printAgentChanges(c *console, result engine.AgentResult, planned bool) error {
	for _, change := range result.Changes {
		if change.Action == "unchanged" && planned {
			continue
		}
		action := string(change.Action)
		if planned {
			action = "would be " + action
		}
		if err := c.print("%s: %s %s\n", change.Agent, clean(change.File), action); err != nil {
			return err
		}
		for _, line := range change.Lines {
			if !planned {
				break
			}
			if err := c.print("  %s\n", clean(line)); err != nil {
				return err
			}
		}
	}
	if planned {
		return nil
	}
	for _, step := range result.Next {
		for i, text := range step.Steps {
			lead := strings.Repeat(" ", len("next for "+step.Agent+": "))
			if i == 0 {
				lead = "next for " + step.Agent + ": "
			}
			if err := c.print("%s%s\n", lead, text); err != nil {
				return err
			}
		}
	}
	return nil
}

func newAgentList(s *session) *cobra.Command {
	o := &agentOptions{console: s.console}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "Show agents, and the sandboxes they work in",
		Long: `Show the agents' clients that litterbox knows, and those of [agents] in your
configuration: whether they are on this machine, which of their settings have
litterbox, what logs them in inside, and what is missing. Below that are the
sandboxes of the repository in which an agent works or has worked, also deleted
ones, for as long as their transcripts are kept.`,
		Example:           "  litterbox agent list --json",
		Aliases:           []string{"ls"},
		Args:              wantArgs(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: s.action(func(ctx context.Context, e useCases, dir string, _ []string) error {
			o.list, o.runs, o.logins, o.dir = e.Agents, e.Runs, e.AgentLogins, dir
			return runAgentList(ctx, o)
		}),
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print a JSON array")
	return cmd
}

func runAgentList(ctx context.Context, o *agentOptions) error {
	agents, err := o.list(ctx, o.dir)
	if err != nil {
		return err
	}
	runs, err := o.runs(ctx, o.dir, "")
	if err != nil {
		runs = nil // outside of a repository there are the clients
	}
	logins, err := o.logins(ctx, o.dir)
	if err != nil {
		o.console.note("%s", err) // the clients that are built in are shown all the same
	}
	agents = withOwn(agents, logins)
	if o.json {
		return o.console.document(listedAgents(agents, runs, logins))
	}
	rows := [][]string{{"AGENT", "CLIENT", "HERE", "INSTALLED", "EXCLUSIVE", "RULES", "FILE"}}
	for _, a := range agents {
		row := []string{a.Agent, a.Title, yesNo(a.Found), "no", "-", "-", "-"}
		if a.Installed == nil {
			row[1], row[3] = "your own", "-"
		}
		if len(a.Installed) == 0 {
			rows = append(rows, row)
		}
		for i, at := range a.Installed {
			if i > 0 {
				row = []string{"", "", "", "", "", "", ""}
			}
			row[3], row[4], row[5], row[6] = fmt.Sprintf("%s (%s)", at.Scope, at.State), yesNo(at.Exclusive), yesNo(at.Rules), at.File
			if at.State == "installed" {
				row[3] = string(at.Scope)
			}
			rows = append(rows, row)
			if at.Problem != "" {
				o.console.note("%s", at.Problem)
			}
		}
	}
	if err := o.console.table(rows); err != nil {
		return err
	}
	if err := o.console.printLogins(agents, logins); err != nil || len(runs) == 0 {
		return err
	}
	rows = [][]string{{"SANDBOX", "AGENT", "STATE", "SINCE", "COMMITS", "TASK"}}
	for _, run := range runs {
		at := run.StartedAt
		if run.State.Over() {
			at = run.EndedAt
		}
		name := run.Sandbox
		if run.Deleted {
			name += " (deleted)"
		}
		rows = append(rows, []string{name, run.Agent, strings.ReplaceAll(string(run.State), "_", " "), ago(o.console.now(), at), fmt.Sprint(run.Commits), firstOf(run.Prompt)})
	}
	if err := o.console.print("\n"); err != nil {
		return err
	}
	return o.console.table(rows)
}

// listedAgent is a client in agent list --json, with its runs.
type listedAgent struct {
	engine.AgentStatus
	Inside *engine.AgentLogin `json:"inside,omitempty"` // whether agent run can use it
	Runs   []engine.Run       `json:"runs"`
}

// withOwn adds the clients of the human's own. litterbox is not installed in their
// settings: it does not know them.
func withOwn(agents []engine.AgentStatus, logins map[string]engine.AgentLogin) []engine.AgentStatus {
	all := slices.Clone(agents)
	for _, name := range slices.Sorted(maps.Keys(logins)) {
		login := logins[name]
		if login.Own && !slices.ContainsFunc(agents, func(a engine.AgentStatus) bool { return a.Agent == name }) {
			all = append(all, engine.AgentStatus{Agent: name, Title: name, Found: login.At != "", At: login.At})
		}
	}
	return all
}

// printLogins says which of the clients that are here can work inside.
func (c *console) printLogins(agents []engine.AgentStatus, logins map[string]engine.AgentLogin) error {
	rows := [][]string{{"INSIDE", "VERSION", "LOGIN", "MISSING"}}
	for _, a := range agents {
		login, known := logins[a.Agent]
		if !known || !a.Found && !login.Own {
			continue
		}
		rows = append(rows, []string{a.Agent, first(login.Version, "-"), first(login.Login, "-"), first(login.Missing, "-")})
	}
	if len(rows) == 1 {
		return nil
	}
	if err := c.print("\n"); err != nil {
		return err
	}
	return c.table(rows)
}

// listedAgents puts runs to their clients; clients of the user's own that have
// run come last.
func listedAgents(agents []engine.AgentStatus, runs []engine.Run, logins map[string]engine.AgentLogin) []listedAgent {
	all := []listedAgent{}
	for _, agent := range agents {
		agent.Installed = list(agent.Installed)
		one := listedAgent{AgentStatus: agent, Runs: []engine.Run{}}
		if login, known := logins[agent.Agent]; known {
			one.Inside = &login
		}
		all = append(all, one)
	}
	for _, run := range runs {
		at := slices.IndexFunc(all, func(one listedAgent) bool { return one.Agent == run.Agent })
		if at < 0 {
			at = len(all)
			all = append(all, listedAgent{AgentStatus: engine.AgentStatus{Agent: run.Agent, Title: run.Title, Installed: []engine.AgentInstalled{}}})
		}
		all[at].Runs = append(all[at].Runs, run)
	}
	return all
}
