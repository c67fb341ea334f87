package engine

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/caller"
	"github.com/litterbox-sandbox/litterbox/internal/config"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/process"
	"github.com/litterbox-sandbox/litterbox/internal/profile"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/store"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// What frontends show of agents' runs.
type (
	// Run is one run of an agent's client.
	Run = sandbox.Run
	// RunEvent is one thing that its client said.
	RunEvent = profile.Event
)

// AgentClients lists the clients that are built in.
func AgentClients() []string { return profile.Names() }

// NameOf makes a sandbox's name of a task; without one it is the client's.
func NameOf(client, prompt string) string {
	if strings.TrimSpace(prompt) == "" {
		return client
	}
	return profile.NameOf(prompt)
}

// Unexpected are the refusals that mean something: clients ask for hosts of
// statistics and updates too, and for hosts that they can do without, and are
// refused as they should be.
func Unexpected(run Run, refused []Refusal) []Refusal {
	client, _ := profile.ByName(run.Agent)
	var rest []Refusal
	for _, one := range refused {
		host, _, found := strings.Cut(one.Destination, ":")
		if !found {
			host = one.Destination
		}
		if !client.IsQuiet(host) && !client.IsQuietAt(host, one.Path, one.Why) {
			rest = append(rest, one)
		}
	}
	return rest
}

// AgentTask asks for a run of an agent's client in a sandbox that exists.
type AgentTask struct {
	Dir    string
	Name   string
	Client string // of its profile; with Resume empty means that of the last run
	Prompt string // empty without a task, which only a screen can do without
	Model  string
	Time   time.Duration // 0: no limit
	Resume bool          // go on with the last conversation
	Screen *wire.Terminal
	Budget string   // of the sandbox's calls of models, such as "5 USD"; empty: as it is
	Extra  []string // arguments for the client, as typed
	Env    []string // K=V
	// Secrets are those that CheckAgent has read: they are not read again.
	Secrets []string

	Settings string // which of the human's own go in; empty is SettingsHarmless

	Packages      bool // allow the package managers that the repository's lock files name
	NoCheckpoints bool
	Quiet         time.Duration // how long files are quiet before a checkpoint; 0: CheckpointQuiet
	AllowDegraded bool
}

// order is the order for the process that drives a run, on its standard input.
type agentOrder struct {
	Run     sandbox.Run
	Dir     string
	Argv    []string
	Env     []string
	Stdin   string
	Profile string
	Timeout time.Duration
	Screen  *wire.Terminal
	Agents  map[string][]string // commands of clients of the user's own

	NoCheckpoints bool
	Quiet         time.Duration
}

// StartAgent begins a run: it puts everything that its client needs into the
// sandbox, and a separate process drives it from then on, even when the caller is
// gone.
func (e *Engine) StartAgent(ctx context.Context, task AgentTask) (run Run, notes []string, err error) {
	p, err := e.find(ctx, task.Dir, task.Name)
	if err != nil {
		return Run{}, nil, err
	}
	if err := e.configure(ctx, p); err != nil {
		return Run{}, nil, err
	}
	last, err := e.lastRun(p.record.ID)
	if err != nil {
		return Run{}, nil, err
	}
	if last != nil && !last.State.Over() {
		return Run{}, nil, fault.New(fault.Conflict, "%s works in sandbox %q already", last.Title, p.record.Name).
			WithHint("litterbox agent attach %s", p.record.Name)
	}
	if task.Resume {
		if last == nil {
			return Run{}, nil, fault.New(fault.NotFound, "no agent has worked in sandbox %q", p.record.Name).
				WithHint("litterbox agent run CLIENT --in %s PROMPT", p.record.Name)
		}
		if task.Client == "" {
			task.Client = last.Agent
		}
		if task.Model == "" {
			task.Model = last.Model
		}
	}
	client, err := clientOf(p.config.Agents, task.Client)
	if err != nil {
		return Run{}, nil, err
	}
	if task.Resume && client.Forgets {
		if task.Resume, err = e.hasAnswered(p.record.ID, client.Name); err != nil {
			return Run{}, nil, err
		}
		if !task.Resume {
			p.note(client.Title + " has kept no conversation, because its model has not answered yet: it begins one")
		}
	}
	if task.Prompt == "" && task.Screen == nil {
		return Run{}, nil, fault.New(fault.Invalid, "%s has nothing to do: no task was given", client.Title).
			WithHint("litterbox agent run %s 'Fix the flaky login test'", client.Name)
	}
	ctx, call, err := e.Begin(ctx, Actor{Via: "cli"}, Action{Name: "agent-run", found: p, Arguments: map[string]any{
		"agent": client.Name, "prompt": task.Prompt, "model": task.Model, "resume": task.Resume, "interactive": task.Screen != nil, "env": names(task.Env),
	}})
	if err != nil {
		return Run{}, nil, err
	}
	defer func() { err = call.end("", nil, err) }()
	if task.Budget != "" {
		if err := e.setLimits(ctx, p, []string{sandbox.LimitBudget + "=" + task.Budget}); err != nil {
			return Run{}, nil, err
		}
	}
	ready, err := e.readyClient(ctx, p, client, task)
	if err != nil {
		return Run{}, p.notes, err
	}
	if err := e.preRun(ctx, p, task); err != nil {
		return Run{}, p.notes, err
	}
	if err := e.knowSecrets(ctx); err != nil {
		return Run{}, p.notes, err
	}
	now := time.Now()
	run = Run{
		SandboxID: p.record.ID, Sandbox: p.record.Name, Repository: p.record.Repository, GitDir: p.record.GitDir,
		Agent: client.Name, Title: client.Title, Session: newSession(), Prompt: e.secretsOf(ctx).Text(task.Prompt), Model: task.Model, Screen: task.Screen != nil,
		State: sandbox.RunStarting, StartedAt: now, From: p.record.From(),
	}
	if p.record.Last != "" {
		run.From = p.record.Last
	}
	if run.Holder, err = process.Identify(os.Getpid()); err != nil {
		return Run{}, p.notes, err
	}
	if err := e.Store.NewRun(&run); err != nil {
		return Run{}, p.notes, err
	}
	what := profile.Task{Prompt: task.Prompt, Model: task.Model, Resume: task.Resume, Project: p.record.Repository, Extra: task.Extra,
		Exclusive: ready.exclusive, Settings: ready.settings}
	if task.Resume && last != nil && last.Agent == client.Name {
		what.Session = last.Dialogue
	}
	argv, stdin := client.Headless(what), task.Prompt
	if task.Screen != nil {
		argv, stdin = client.Screen(what), ""
	}
	order := agentOrder{
		Run: run, Dir: p.record.Repository, Argv: append([]string{ready.program}, argv...), Stdin: stdin,
		Env: slices.Concat(clientEnv(callerOf(ctx).Env, p.record.Image != nil), client.Env, ready.env, task.Env), Profile: client.Name, Timeout: task.Time, Screen: task.Screen,
		Agents: p.config.Agents.Commands(), NoCheckpoints: task.NoCheckpoints, Quiet: task.Quiet,
	}
	run.Holder, err = e.startRunner(ctx, order)
	if err != nil {
		run.State, run.Problem, run.EndedAt = sandbox.RunFailed, err.Error(), time.Now()
		return run, p.notes, errors.Join(err, e.Store.SaveRun(&run))
	}
	return run, p.notes, nil
}

// newSession is a name for a run that no other has.
func newSession() string {
	id := make([]byte, 8)
	_, _ = rand.Read(id) // it never fails (crypto/rand)
	return hex.EncodeToString(id)
}

// startRunner starts the process that drives a run.
func (e *Engine) startRunner(ctx context.Context, order agentOrder) (sandbox.Process, error) {
	if e.Runner == nil {
		return sandbox.Process{}, fault.New(fault.Unsupported, "cannot run agents: this program starts no processes of its own")
	}
	data, err := json.Marshal(order)
	if err != nil {
		return sandbox.Process{}, err
	}
	pid, err := e.Runner(caller.Lasting(callerOf(ctx).Env), data, filepath.Join(e.Store.RunDir(order.Run.SandboxID, order.Run.Number), store.RunProblem))
	if err != nil {
		return sandbox.Process{}, fault.Wrap(fault.Unavailable, err, "cannot start the process that drives %s", order.Run.Title)
	}
	return process.Identify(pid)
}

// lastRun is the last run in a sandbox, in its true state: one whose process has
// died is lost. It is nil when there was none.
func (e *Engine) lastRun(id string) (*Run, error) {
	runs, err := e.Store.Runs(id)
	if err != nil || len(runs) == 0 {
		return nil, err
	}
	return e.asItStands(runs[len(runs)-1]), nil
}

// hasAnswered reports whether a client's model may have answered in a sandbox: not
// where every run of the client has failed before that.
func (e *Engine) hasAnswered(id, client string) (bool, error) {
	runs, err := e.Store.Runs(id)
	return slices.ContainsFunc(runs, func(run *Run) bool {
		return run.Agent == client && (run.State != sandbox.RunFailed || run.Screen || run.Commands > 0 || run.TokensOut > 0)
	}), err
}

// asItStands corrects the state of a run whose process died before it could.
func (e *Engine) asItStands(run *Run) *Run {
	if run.State.Over() || process.Alive(run.Holder) || run.State == sandbox.RunStarting && time.Since(run.StartedAt) < runnerPatience {
		return run
	}
	if again, err := e.Store.Run(run.SandboxID, run.Number); err == nil && again.State.Over() {
		return again // it ended during the check
	}
	lost := *run
	lost.State, lost.Problem = sandbox.RunLost, "the process that drove it has died; what was done is committed by the next command"
	if lost.EndedAt.IsZero() {
		lost.EndedAt = time.Now()
	}
	if e.Store.SaveRun(&lost) != nil {
		return &lost // shown all the same
	}
	return &lost
}

// runnerPatience is how long a run may take until its process says that it
// has begun.
const runnerPatience = 20 * time.Second

// Runs lists agents' runs: the last of each sandbox of the repository, or with
// a name all of that sandbox, also when it is deleted.
func (e *Engine) Runs(ctx context.Context, dir, name string) ([]Run, error) {
	gitDir, err := gitDirOf(ctx, dir)
	if err != nil {
		return nil, err
	}
	slug := ""
	if name != "" {
		if slug, err = sandbox.Slug(name); err != nil {
			return nil, err
		}
	}
	all, err := e.Store.AllRuns()
	if err != nil {
		return nil, err
	}
	var found []Run
	for i, run := range all {
		if run.GitDir != gitDir || slug != "" && run.Sandbox != slug {
			continue
		}
		newer := slices.ContainsFunc(all[i+1:], func(other *Run) bool { return other.SandboxID == run.SandboxID })
		if slug == "" && newer {
			continue
		}
		now := *e.asItStands(run)
		_, err := e.Store.Sandbox(run.SandboxID)
		now.Deleted = errors.Is(err, fs.ErrNotExist)
		found = append(found, now)
	}
	return found, nil
}

// findRun is the last run in the sandbox of that name.
func (e *Engine) findRun(ctx context.Context, dir, name string) (*Run, error) {
	runs, err := e.Runs(ctx, dir, name)
	if err != nil {
		return nil, err
	}
	if len(runs) == 0 {
		return nil, fault.New(fault.NotFound, "no agent has worked in a sandbox %q", name).WithHint("litterbox agent list")
	}
	return &runs[len(runs)-1], nil
}

// LastRun is the last run in the sandbox of that name, also when it is deleted.
func (e *Engine) LastRun(ctx context.Context, dir, name string) (Run, error) {
	run, err := e.findRun(ctx, dir, name)
	if err != nil {
		return Run{}, err
	}
	return *run, nil
}

// forgetRuns removes the transcripts of sandboxes that were deleted long enough
// ago.
func (e *Engine) forgetRuns(ctx context.Context) error {
	keep := trashAge
	if user, err := config.LoadUser(callerOf(ctx)); err == nil && user.Retention.Trash > 0 {
		keep = user.Retention.Trash
	}
	return e.Store.ForgetRuns(time.Now().Add(-keep))
}

// StopAgent ends a run: its client is asked to end, and its work is committed. It
// is not an error when it has ended.
func (e *Engine) StopAgent(run Run) error {
	if run.State.Over() || !process.Alive(run.Holder) {
		return nil
	}
	if err := syscall.Kill(run.Holder.PID, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fault.Wrap(fault.Unavailable, err, "cannot end %s in sandbox %q", run.Title, run.Sandbox)
	}
	return nil
}
