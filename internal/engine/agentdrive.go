package engine

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/branch"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/ledger"
	"github.com/litterbox-sandbox/litterbox/internal/process"
	"github.com/litterbox-sandbox/litterbox/internal/profile"
	"github.com/litterbox-sandbox/litterbox/internal/redact"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/store"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// Working is the agent that a command belongs to: commits and the log name it.
type Working struct {
	Title   string
	Version func() string // known when the client has said so
	Session string
	Prompt  string
}

func (w *Working) describe(iteration *sandbox.Iteration) {
	if w == nil {
		return
	}
	iteration.Agent, iteration.Session, iteration.Prompt = w.name(), w.Session, w.Prompt
}

func (w *Working) name() string {
	if version := w.Version(); version != "" {
		return w.Title + " " + version
	}
	return w.Title
}

// agentTrailers name the agent that an iteration is of.
func agentTrailers(iteration *sandbox.Iteration) []branch.Trailer {
	if iteration.Agent == "" {
		return nil
	}
	return []branch.Trailer{{Key: "Litterbox-Agent", Value: iteration.Agent}, {Key: "Litterbox-Session", Value: iteration.Session}}
}

// longestPrompt is how much of a task a commit tells, in bytes.
const longestPrompt = 4 << 10

// promptBody is a task as the body of a commit.
func promptBody(prompt string) string {
	prompt = strings.TrimSpace(strings.ToValidUTF8(prompt, "�"))
	if len(prompt) > longestPrompt {
		prompt = strings.ToValidUTF8(prompt[:longestPrompt], "") + "…"
	}
	return prompt
}

// DriveAgent drives one run until its client ends. The process that
// [Options.Runner] starts does this; input is the order.
func (e *Engine) DriveAgent(ctx context.Context, input io.Reader) error {
	var order agentOrder
	if err := json.NewDecoder(input).Decode(&order); err != nil {
		return fault.Wrap(fault.Invalid, err, "cannot read the order of a run")
	}
	d := &drive{e: e, order: order, run: order.Run, hidden: inForms(redact.Values(order.Env))}
	err := d.do(ctx)
	return errors.Join(err, d.finish(context.WithoutCancel(ctx), err))
}

// drive is one run under way.
type drive struct {
	e      *Engine
	order  agentOrder
	before ledger.Row // what the sandbox had spent when the run began
	hidden []string   // values of the client's environment, which no transcript shows

	mu      sync.Mutex // guards the rest
	run     sandbox.Run
	summary profile.Summary
	exit    *wire.Exit
	stopped bool
	events  *os.File
	output  *os.File
}

func (d *drive) do(ctx context.Context) (err error) {
	e, order := d.e, d.order
	d.before = e.spent(d.run.SandboxID)
	if d.run.Holder, err = process.Identify(os.Getpid()); err != nil {
		return err
	}
	dir := e.Store.RunDir(d.run.SandboxID, d.run.Number)
	for _, open := range []struct {
		file **os.File
		name string
	}{{&d.events, store.RunEvents}, {&d.output, store.RunOutput}} {
		if *open.file, err = os.OpenFile(filepath.Join(dir, open.name), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600); err != nil {
			return fault.Wrap(fault.Unavailable, err, "cannot write the transcript of a run")
		}
	}
	d.run.State = sandbox.RunWorking
	if err := e.Store.SaveRun(&d.run); err != nil {
		return err
	}
	p, err := e.find(ctx, order.Dir, d.run.Sandbox)
	if err != nil {
		return err
	}
	if p.record.ID != d.run.SandboxID {
		return fault.New(fault.NotFound, "sandbox %q was deleted", d.run.Sandbox)
	}
	who := Actor{Via: "agent", Client: d.run.Title, Session: d.run.Session}
	release, err := e.holdOn(ctx, p, who)
	if err != nil {
		return err
	}
	defer release()
	ctx, call, err := e.Begin(ctx, who, Action{Name: "agent", found: p, Arguments: map[string]any{
		"agent": d.run.Agent, "prompt": d.run.Prompt, "model": d.run.Model, "run": d.run.Number,
	}})
	if err != nil {
		return err
	}
	var result ExecResult
	defer func() {
		var code *int
		if d.exit != nil {
			code = &d.exit.Code
		}
		err = call.end(commitOf(result.Iteration), code, err)
	}()
	if err := e.recover(ctx, p); err != nil {
		return err
	}
	// Asked to stop, the client ends and its work is committed: not before it has
	// begun, and not in the middle of the commit.
	request := ExecRequest{
		Dir: order.Dir, Name: d.run.Sandbox, Argv: order.Argv, Kind: "agent", Env: order.Env, Timeout: order.Timeout,
		Command: d.run.Agent + ": " + firstLine(d.run.Prompt, "interactive"), Message: firstLine(d.run.Prompt, d.run.Title+" session"),
		Agent: &Working{Title: d.run.Title, Session: d.run.Session, Prompt: d.run.Prompt, Version: d.version},
	}
	request.Checkpoints = Checkpoints{Quiet: cmp.Or(order.Quiet, CheckpointQuiet), Least: checkpointLeast, Doing: d.doing}
	if order.NoCheckpoints {
		request.Checkpoints.Quiet = -1
	}
	if order.Screen != nil {
		log := d.secrets().Stream(d.output)
		screen, err := openScreen(dir, *order.Screen, log)
		if err != nil {
			return err
		}
		defer func() {
			screen.close(&d.run)
			_ = log.Close() // of which the transcript is a copy
		}()
		request.Streams = screen.streams()
	} else {
		client, err := profileOf(order)
		if err != nil {
			return err
		}
		taker := &transcript{drive: d, client: client, reader: client.NewRead()}
		defer taker.flush()
		lines := &lineWriter{each: taker.line}
		defer lines.flush()
		problems := &lineWriter{each: func(line []byte) { d.record(RunEvent{Kind: profile.Line, Text: string(bytes.TrimRight(line, "\r\n"))}) }}
		defer problems.flush()
		request.Streams = Streams{Stdin: strings.NewReader(order.Stdin), Stdout: lines, Stderr: problems}
	}
	result, err = e.execute(ctx, p, request)
	left := e.leftInside(context.WithoutCancel(ctx), order.Dir, d.run.Sandbox)
	d.mu.Lock()
	d.stopped = ctx.Err() != nil
	if err == nil {
		d.exit = &result.Exit
	}
	d.run.Notes = slices.Concat(result.Notes, left)
	d.mu.Unlock()
	return err
}

// profileOf is the profile that an order names.
func profileOf(order agentOrder) (profile.Profile, error) {
	if command := order.Agents[order.Profile]; len(command) > 0 {
		return profile.Own(order.Profile, command, nil, nil, nil), nil
	}
	client, ok := profile.ByName(order.Profile)
	if !ok {
		return client, fault.New(fault.Invalid, "there is no agent %q", order.Profile)
	}
	return client, nil
}

// holdOn claims the sandbox for a run, until the function that it returns is
// called.
func (e *Engine) holdOn(ctx context.Context, p *place, who Actor) (func(), error) {
	hold, _, err := e.hold(ctx, p, who)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(HoldBeat)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				_ = e.Renew(ctx, hold) // the next beat tries again
			}
		}
	}()
	return func() {
		cancel()
		<-done
		_ = e.Release(context.WithoutCancel(ctx), hold) // it ends with this process anyway
	}, nil
}

func (d *drive) version() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.summary.Version
}

func (d *drive) doing() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.summary.Doing
}

// finish records the result of the run.
func (d *drive) finish(ctx context.Context, problem error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	run, s := &d.run, &d.summary
	run.EndedAt = time.Now()
	run.Client, run.Dialogue, run.Last, run.Commands = s.Version, s.Session, s.Last, s.Commands
	run.TokensIn, run.TokensRead, run.TokensOut, run.CostUSD = s.Usage.In, s.Usage.Cached, s.Usage.Out, s.CostUSD
	run.Used = s.Model
	run.Metered = d.e.metered(ctx, run.SandboxID, d.before)
	run.State = outcome(d.exit, s, run.Screen, d.stopped)
	if d.exit != nil {
		run.ExitCode = d.exit.Code
	}
	switch {
	case problem != nil:
		run.State, run.Problem, run.ExitCode = sandbox.RunFailed, problem.Error(), 125
		if d.stopped {
			run.State = sandbox.RunStopped
		}
	case run.State == sandbox.RunFailed && s.Failed:
		run.Problem = firstLine(s.Last, "")
		if run.ExitCode == 0 {
			run.ExitCode = 1 // some clients always exit with 0
		}
	case run.State == sandbox.RunFailed:
		run.Problem = fmt.Sprintf("%s exited with %d", run.Title, run.ExitCode)
	}
	d.count(ctx)
	err := d.e.Store.SaveRun(run)
	for _, file := range []*os.File{d.events, d.output} {
		if file != nil {
			err = errors.Join(err, file.Close())
		}
	}
	return err
}

// outcome judges a run by its client's exit and by what its stream said.
func outcome(exit *wire.Exit, s *profile.Summary, screen, stopped bool) sandbox.RunState {
	switch {
	case exit == nil:
		return sandbox.RunFailed
	case exit.TimedOut:
		return sandbox.RunTimedOut
	case stopped:
		return sandbox.RunStopped
	case exit.Code != 0 || s.Failed && !screen:
		return sandbox.RunFailed
	}
	return sandbox.RunCompleted
}

// count counts the commits that the run has made, and the files in them.
func (d *drive) count(ctx context.Context) {
	record, err := d.e.Store.Sandbox(d.run.SandboxID)
	if err != nil {
		return // deleted in the meantime
	}
	d.run.Head = record.Last
	if record.Last == "" || record.Last == d.run.From {
		return
	}
	repo := d.e.memory().At(ctx, record.GitDir, record.Repository, record.Base)
	if git.CheckOids(d.run.From, record.Last) != nil {
		return
	}
	if line, err := repo.Command("rev-list", "--count", record.Last, "^"+d.run.From, "--").Line(ctx); err == nil {
		d.run.Commits, _ = strconv.Atoi(line) // git's own number
	}
	if changes, err := repo.DiffTrees(ctx, d.run.From, record.Last); err == nil {
		d.run.Files = len(changes)
	}
}
