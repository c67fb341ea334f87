package engine

import (
	"cmp"
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/process"
	"github.com/litterbox-sandbox/litterbox/internal/redact"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// Exec runs one command in a sandbox and commits what it changed. A command
// that fails, times out or is interrupted commits too; its exit code is in the
// result. Several may run at once; their commits are serialized.
func (e *Engine) Exec(ctx context.Context, request ExecRequest) (result ExecResult, err error) {
	if len(request.Argv) == 0 {
		return ExecResult{}, fault.New(fault.Invalid, "cannot run a command: none was given").
			WithHint("litterbox exec %s -- make test", request.Name)
	}
	for _, entry := range request.Env {
		if key, _, ok := strings.Cut(entry, "="); !ok || key == "" || strings.ContainsRune(entry, 0) {
			return ExecResult{}, fault.New(fault.Invalid, "cannot set %q: an environment variable is KEY=VALUE", entry)
		}
	}
	p, err := e.find(ctx, request.Dir, request.Name)
	if err != nil {
		return ExecResult{}, err
	}
	if err := e.ofDriver(p, request.Driver); err != nil {
		return ExecResult{}, err
	}
	if request.Refusals {
		p.looking = &looking{since: time.Now()}
		defer p.looking.into(&result) // after the entry in the audit log
	}
	ctx, call, err := e.recordIn(ctx, p, cmp.Or(request.Kind, "exec"), map[string]any{
		"command": request.command(ctx, e), "message": request.message(ctx, e), "env": names(request.Env), "workdir": request.WorkDir,
	})
	if err != nil {
		return ExecResult{}, err
	}
	defer func() { err = call.end(commitOf(result.Iteration), &result.Exit.Code, err) }()
	if err := e.recover(ctx, p); err != nil {
		return ExecResult{}, err
	}
	e.catchUp(ctx, p, request.AllowDegraded)
	return e.execute(ctx, p, request)
}

// command is the command line as every record shows it: without secrets.
func (r *ExecRequest) command(ctx context.Context, e *Engine) string {
	if r.Command != "" {
		return r.secretsOf(ctx, e).Text(r.Command)
	}
	return quoteCommand(r.secretsOf(ctx, e).Argv(r.Argv))
}

// message is the message given for it, without secrets.
func (r *ExecRequest) message(ctx context.Context, e *Engine) string {
	return r.secretsOf(ctx, e).Tokens(r.Message)
}

// names are the names of variables: their values may be secrets.
func names(env []string) []string {
	var all []string
	for _, entry := range env {
		name, _, _ := strings.Cut(entry, "=")
		all = append(all, name)
	}
	return all
}

// commitOf is the commit of an iteration, if there was one.
func commitOf(iteration *sandbox.Iteration) string {
	if iteration == nil {
		return ""
	}
	return iteration.Commit
}

// execute is one cycle with one iteration.
func (e *Engine) execute(ctx context.Context, p *place, request ExecRequest) (ExecResult, error) {
	if request.Kind == "" {
		request.Kind = "exec"
	}
	request.Message = request.message(ctx, e)
	cycle, stream, err := e.beginCycle(ctx, p, request.Kind, request.command(ctx, e), request.Message, request.AllowDegraded)
	result := ExecResult{}
	if err == nil {
		result, err = e.perform(ctx, p, request, cycle, stream)
	}
	if cycle == nil {
		return result, err
	}
	if err != nil || result.Exit.Code != 0 {
		err = e.cutOff(p, cycle, result.Iteration, err)
	}
	err = errors.Join(err, e.endCycle(ctx, p, cycle, result.Exit, err))
	if err == nil && result.Iteration != nil {
		e.snapshotAfter(context.WithoutCancel(ctx), p, sandbox.SnapshotIteration)
	}
	result.Notes = append(p.notes, result.Notes...)
	return result, err
}

func (e *Engine) perform(ctx context.Context, p *place, request ExecRequest, cycle *sandbox.Cycle, stream wire.Stream) (ExecResult, error) {
	defer stream.Close()
	trust, err := e.trustEnv(ctx, p)
	if err != nil {
		return ExecResult{}, err
	}
	command := wire.Exec{
		Dir: []byte(request.WorkDir), Env: slices.Concat(clientEnv(callerOf(ctx).Env, p.record.Image != nil), trust, request.Env),
		Terminal: request.Streams.Terminal, Timeout: request.Timeout, Iteration: cycle.ID, Keep: request.Keep,
	}
	argv := request.Argv
	if request.Interactive && request.Streams.Terminal != nil {
		found, err := e.settings(ctx, p.record.Repository, p.record.GitDir)
		if err != nil {
			return ExecResult{}, err
		}
		var env []string
		if argv, env, err = interactive(found.config.Shell, callerOf(ctx), argv); err != nil {
			return ExecResult{}, err
		}
		command.Env = append(command.Env, env...)
	}
	for _, argument := range argv {
		command.Argv = append(command.Argv, []byte(argument))
	}
	endQuestions := func() {}
	if request.Ask != nil {
		asked, err := e.takeQuestions(ctx, p, request)
		if err != nil {
			return ExecResult{}, err
		}
		endQuestions = asked.close
	}
	started := time.Now()
	var ahead *ahead
	if !request.NoCommit {
		ahead = p.openAhead(ctx)
		defer ahead.close()
		p.repo.Prefetch(p.deltaFile(), p.store.Strict()) // what the commit needs of git, while the command runs
		defer p.repo.EndPrefetch()
	}
	endCheckpoints := e.checkpoints(ctx, p, cycle, request)
	exit, err := wire.Run(ctx, stream, command, wire.Streams{
		Started: request.Streams.Started,
		Stdin:   request.Streams.Stdin, Stdout: request.Streams.Stdout, Stderr: request.Streams.Stderr,
		Resize: request.Streams.Resize, Signals: request.Streams.Signals,
	})
	endCheckpoints()
	endQuestions()
	if err != nil {
		err = e.underCommand(ctx, p, err)
		// The guest or its keeper went away under the command. The next command
		// commits what it had written so far.
		return ExecResult{}, err
	}
	if p.looking != nil {
		p.looking.begin(context.WithoutCancel(ctx), e, p) // beside the commit and the records
	}
	result := ExecResult{Exit: exit}
	if exit.TimedOut || exit.Code >= signalled {
		e.noteLimits(context.WithoutCancel(ctx), p, request, exit, started)
	}
	if note := missingNote(p, request, exit); note != "" {
		p.note(note)
	}
	if note := lateNote(context.WithoutCancel(ctx), p, started); note != "" {
		p.note(note)
	}
	if request.NoCommit {
		return result, nil
	}
	// Interrupted or not, the command's work is committed.
	ctx = context.WithoutCancel(ctx)
	cycle.ExitCode, cycle.TimedOut = exit.Code, exit.TimedOut
	if err := e.advance(ctx, p, cycle, sandbox.PostProcessing); err != nil {
		return result, err
	}
	iteration := &sandbox.Iteration{
		Cycle: cycle.ID, Kind: request.Kind, Message: request.Message, Command: cycle.Command,
		ExitCode: exit.Code, Signal: exit.Signal, TimedOut: exit.TimedOut, StartedAt: started, Duration: exit.Duration,
	}
	request.Agent.describe(iteration)
	onlyIfChanged := request.Lenient || request.Kind == "shell" || request.Kind == "setup" || request.Kind == "agent" || request.Kind == "hook"
	committed, notes, err := e.commit(ctx, p, iteration, commitOptions{onlyIfChanged: onlyIfChanged, ran: true, ahead: ahead})
	result.Notes = notes
	if committed {
		result.Iteration = iteration
	}
	return result, err
}

// signalled is the exit code above which a signal may have ended a command, or
// the child of a shell.
const signalled = 128

// beginCycle records a run and brings it to where its work can begin: executing,
// with a stream to a running sandbox. On an error the caller ends the cycle, if
// there is one, by endCycle.
func (e *Engine) beginCycle(ctx context.Context, p *place, kind, command, message string, degraded bool) (*sandbox.Cycle, wire.Stream, error) {
	if err := e.renewPending(ctx, p); err != nil {
		return nil, nil, err
	}
	type dialled struct {
		stream wire.Stream
		err    error
	}
	answer := make(chan dialled, 1)
	go func() {
		stream, err := p.dial(ctx)
		answer <- dialled{stream, err}
	}()
	cycle, err := e.recordCycle(ctx, p, kind, command, message)
	if err == nil {
		// A deletion marks the sandbox first and then looks for cycles: one of the
		// two sees the other.
		err = e.stillThere(p)
	}
	got := <-answer
	var stream wire.Stream
	if got.err == nil {
		stream = got.stream
	}
	if stream != nil && err == nil && p.unreachable { // it may be coming back
		err, stream = stream.Close(), nil
	}
	if stream != nil && err == nil {
		if err = e.unready(ctx, p); err == nil {
			err = e.lend(ctx, p)
		}
	}
	if stream == nil && err == nil {
		cycle.State = sandbox.Leasing
		err = p.store.SaveCycle(p.record.ID, cycle)
	}
	if err != nil {
		if stream != nil {
			err = errors.Join(err, stream.Close())
		}
		return cycle, nil, err
	}
	leasing := event(sandbox.EventCycleLeasing, cycle.ID, "kind", kind, "command", command)
	if stream != nil {
		e.emit(ctx, p, leasing, event(sandbox.EventCyclePreparing, cycle.ID), event(sandbox.EventCycleExecuting, cycle.ID))
		return cycle, stream, nil
	}
	e.emit(ctx, p, leasing)
	if stream, err = e.running(ctx, p, degraded); err != nil {
		return cycle, nil, err
	}
	if err := e.advance(ctx, p, cycle, sandbox.Preparing, sandbox.Executing); err != nil {
		return cycle, nil, errors.Join(err, stream.Close())
	}
	return cycle, stream, nil
}

// recordCycle writes a new cycle down as executing: nearly always the sandbox
// runs, and leasing is over before it could be written. On an error there is
// no cycle.
func (e *Engine) recordCycle(ctx context.Context, p *place, kind, command, message string) (*sandbox.Cycle, error) {
	holder, err := process.Identify(os.Getpid())
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "cannot identify this process")
	}
	policy, err := e.policy(p)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	cycle := &sandbox.Cycle{LeaseID: p.record.ID, Policy: policy.Revision, Kind: kind, Command: command, Message: message,
		State: sandbox.Executing, RequestedAt: now, StartedAt: now, Holder: holder}
	if err := p.store.BeginCycle(ctx, p.record.ID, cycle); err != nil {
		return nil, err
	}
	return cycle, nil
}

func (e *Engine) endCycle(ctx context.Context, p *place, cycle *sandbox.Cycle, exit wire.Exit, problem error) error {
	cycle.State = sandbox.Completed
	// Its start plus its duration, however the clock was set meanwhile.
	cycle.CompletedAt = cycle.StartedAt.Add(time.Since(cycle.StartedAt))
	cycle.ExitCode, cycle.TimedOut = exit.Code, exit.TimedOut
	if problem != nil {
		cycle.State, cycle.Problem = sandbox.CycleFailed, problem.Error()
	}
	err := p.store.SaveCycle(p.record.ID, cycle)
	if _, statErr := os.Stat(p.dir); errors.Is(statErr, os.ErrNotExist) {
		return nil // deleted by another command while this one ran
	}
	e.emit(ctx, p, cycleOver(cycle))
	return err
}

// cycleOver is the event of a cycle that has ended.
func cycleOver(cycle *sandbox.Cycle) *sandbox.Event {
	timedOut := ""
	if cycle.TimedOut {
		timedOut = "true"
	}
	if cycle.State == sandbox.CycleFailed {
		return event(sandbox.EventCycleFailed, cycle.ID, "problem", cycle.Problem)
	}
	return event(sandbox.EventCycleCompleted, cycle.ID, "exit_code", itoa(cycle.ExitCode), "timed_out", timedOut)
}

// recover finishes the cycles whose client died: their changes are committed, and
// the cycle is recorded as failed.
func (e *Engine) recover(ctx context.Context, p *place) error {
	cycles, err := p.store.LiveCycles(ctx, p.record.ID)
	if err != nil {
		return err
	}
	for i := range cycles {
		cycle := &cycles[i]
		if process.Alive(cycle.Holder) {
			continue
		}
		iteration := &sandbox.Iteration{Cycle: cycle.ID, Kind: "recovered", Command: cycle.Command,
			Message: "recovered: " + firstLine(cycle.Message, cycle.Command), ExitCode: -1, StartedAt: cycle.StartedAt}
		committed, notes, err := e.commit(ctx, p, iteration, commitOptions{onlyIfChanged: true})
		if err != nil {
			return err
		}
		p.note(notes...)
		if committed {
			p.note("a " + cycle.Kind + " was cut off by a crash: its changes are committed as iteration " + itoa(iteration.Number))
		}
		cycle.State, cycle.Problem, cycle.CompletedAt = sandbox.CycleFailed, "its client died", time.Now()
		if err := p.store.SaveCycle(p.record.ID, cycle); err != nil {
			return err
		}
		e.emit(ctx, p, cycleOver(cycle))
	}
	return nil
}

// quoteCommand writes argv so that a shell would read it back.
func quoteCommand(argv []string) string {
	quoted := make([]string, len(argv))
	for i, argument := range argv {
		quoted[i] = argument
		if argument == "" || strings.ContainsFunc(strings.ReplaceAll(argument, redact.Gone, ""), func(r rune) bool {
			return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./=:,@%+", r))
		}) {
			quoted[i] = "'" + strings.ReplaceAll(argument, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}
