package engine

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/process"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/service"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// WorkKind says what is at work in a sandbox.
type WorkKind string

// The kinds of work. All but services keep a sandbox from being merged and
// deleted.
const (
	WorkCommand WorkKind = "command" // a client waits for it
	WorkShell   WorkKind = "shell"
	WorkEditor  WorkKind = "editor"  // its server works inside
	WorkAgent   WorkKind = "agent"   // a session that holds the sandbox
	WorkProcess WorkKind = "process" // a command left it running
	WorkPaused  WorkKind = "paused"  // paused processes cannot be listed
	WorkService WorkKind = "service"
)

// Work is something that is at work in a sandbox. The JSON fields are pinned by
// golden files.
type Work struct {
	Kind    WorkKind  `json:"kind"`
	What    string    `json:"what"` // command line, name of the agent or the service
	By      string    `json:"by,omitempty"`
	PID     int       `json:"pid,omitempty"` // of the client; of a process left running, inside
	Since   time.Time `json:"since,omitzero"`
	holder  sandbox.Process
	session string
}

// String names the work, who does it and since when.
func (w Work) String() string {
	const most = 60
	what := w.What
	if runes := []rune(what); len(runes) > most {
		what = string(runes[:most-1]) + "…"
	}
	text := ""
	switch w.Kind {
	case WorkShell:
		text = "a shell"
		if w.What != "" {
			text += " (" + what + ")"
		}
	case WorkEditor:
		text = "an editor (" + what + ")"
	case WorkAgent:
		text = "the agent session of " + what
	case WorkProcess:
		text = fmt.Sprintf("process %d, left running: %s", w.PID, what)
	case WorkPaused:
		text = "what was paused in it"
	case WorkService:
		text = "service " + what
	default:
		text = what
	}
	if w.By != "" {
		text += " by " + w.By
		if w.PID != 0 {
			text += fmt.Sprintf(" (process %d)", w.PID)
		}
	}
	if !w.Since.IsZero() {
		text += " since " + since(w.Since, time.Now())
	}
	return text
}

// since is a point in time as a person reads it.
func since(at, now time.Time) string {
	if at.Local().Format(time.DateOnly) == now.Local().Format(time.DateOnly) {
		return at.Local().Format(time.TimeOnly)
	}
	return at.Local().Format(time.DateTime)
}

// nameWork lists the first few of several works in words.
func nameWork(all []Work) string {
	const most = 4
	var named []string
	for _, one := range all[:min(len(all), most)] {
		named = append(named, one.String())
	}
	if more := len(all) - most; more > 0 {
		named = append(named, "and "+itoa(more)+" more")
	}
	return strings.Join(named, "; ")
}

// holding is the work that would be lost with the sandbox: all but services.
func holding(all []Work) []Work {
	return slices.DeleteFunc(slices.Clone(all), func(w Work) bool { return w.Kind == WorkService })
}

// attended is the work that a person or an agent waits for: processes that a
// command has left running stay out as well.
func attended(all []Work) []Work {
	return slices.DeleteFunc(holding(all), func(w Work) bool { return w.Kind == WorkProcess || w.Kind == WorkPaused })
}

const (
	// workPatience bounds how long the sandbox and the records may disagree about
	// work that is just beginning or ending.
	workPatience = time.Second
	workPause    = 20 * time.Millisecond
)

// atWork lists what is at work in a sandbox, as its guest says: a command that is
// only recorded does not count, nor does one whose client is gone.
func (e *Engine) atWork(ctx context.Context, p *place) ([]Work, error) {
	return e.awaitWork(ctx, p, e.inside)
}

// awaitWork is atWork with a given way to ask the guest.
func (e *Engine) awaitWork(ctx context.Context, p *place, ask func(context.Context, *place) (wire.ProcessList, error)) ([]Work, error) {
	for deadline := time.Now().Add(workPatience); ; time.Sleep(workPause) {
		all, settled, err := e.lookAtWork(ctx, p, ask)
		if err != nil || settled || time.Now().After(deadline) || ctx.Err() != nil {
			return all, err
		}
	}
}

// lookAtWork is one look of atWork. It is settled when another look would show the
// same.
func (e *Engine) lookAtWork(ctx context.Context, p *place, ask func(context.Context, *place) (wire.ProcessList, error)) (all []Work, settled bool, err error) {
	cycles, err := e.liveCycles(ctx, p)
	if err != nil {
		return nil, false, err
	}
	inside, err := ask(ctx, p)
	if err != nil {
		return nil, false, err
	}
	settled = true
	agent := e.agentOf(p.record)
	if agent != nil && !e.asks(ctx, agent) {
		all = append(all, Work{Kind: WorkAgent, What: cmp.Or(strings.TrimSpace(agent.Client+" "+agent.ClientVersion), "an agent"),
			By: callerOf(ctx).User, PID: agent.Holder.PID, Since: agent.AcquiredAt, holder: agent.Holder, session: agent.Session})
	}
	for _, cycle := range cycles {
		runs := slices.ContainsFunc(inside.Commands, func(r wire.Running) bool { return r.Cycle == cycle.ID })
		if inside.Complete && !runs && cycle.State == sandbox.Executing && runsCommand(cycle.Kind) {
			// Just beginning, just over, or a record that was never closed.
			settled = false
			if time.Since(cycle.StartedAt) > workPatience {
				continue
			}
		}
		work := Work{Kind: WorkCommand, What: cycle.Command, By: callerOf(ctx).User, PID: cycle.Holder.PID, Since: cycle.StartedAt, holder: cycle.Holder}
		switch cycle.Kind {
		case "shell":
			work.Kind = WorkShell
		case editorKind:
			work.Kind = WorkEditor
		}
		if agent != nil && agent.Holder == cycle.Holder && agent.Client != "" {
			work.By = agent.Client
		}
		all = append(all, work)
	}
	for _, left := range inside.Processes {
		settled = false // git, for one, leaves some that end at once
		all = append(all, Work{Kind: WorkProcess, What: left.Command, PID: left.PID})
	}
	if p.paused && e.pausedByUser(ctx, p) {
		all = append(all, Work{Kind: WorkPaused, What: "what was paused"})
	}
	if inside.Complete {
		// Not knowing the services blocks nothing: they may be ended.
		services, err := e.services(ctx, p, sandbox.Running)
		if err == nil {
			for _, one := range services {
				if one.State != service.Stopped && one.State != service.Exited {
					all = append(all, Work{Kind: WorkService, What: one.Name})
				}
			}
		}
	}
	return all, settled, nil
}

// runsCommand reports whether a cycle of that kind is a command of the guest.
func runsCommand(kind string) bool { return kind == "exec" || kind == "shell" || kind == "setup" }

// liveCycles are the runs of other processes that still live.
func (e *Engine) liveCycles(ctx context.Context, p *place) ([]sandbox.Cycle, error) {
	cycles, err := p.store.LiveCycles(ctx, p.record.ID)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(cycles, func(c sandbox.Cycle) bool { return !process.Alive(c.Holder) }), nil
}

// asks reports whether ctx belongs to the agent's own session.
func (e *Engine) asks(ctx context.Context, agent *sandbox.Agent) bool {
	call := openCall(ctx)
	return call != nil && call.entry.Who.Session != "" && call.entry.Who.Session == agent.Session
}

// inside asks the guest what runs. A keeper or a guest of another version may not
// know; then only the records tell.
func (e *Engine) inside(ctx context.Context, p *place) (wire.ProcessList, error) {
	if stream, err := p.dial(ctx); err == nil {
		return e.askGuest(ctx, p, stream)
	}
	switch state, _ := e.state(ctx, p.record); state {
	case sandbox.Running: // everything in it still runs without a keeper
	case sandbox.Paused:
		p.paused = true
		return wire.ProcessList{}, nil
	case sandbox.Unreachable: // what runs there must not count as nothing
		return wire.ProcessList{}, e.unreachable(ctx, p, nil)
	default:
		return wire.ProcessList{}, nil
	}
	stream, err := e.running(ctx, p, false)
	if err != nil {
		return wire.ProcessList{}, err
	}
	return e.askGuest(ctx, p, stream)
}

// insideNow is inside for callers that must start no keeper.
func (e *Engine) insideNow(ctx context.Context, p *place) (wire.ProcessList, error) {
	ctx, cancel := context.WithTimeout(ctx, welcomePatience)
	defer cancel()
	stream, err := p.dial(ctx)
	if err != nil {
		return wire.ProcessList{}, nil
	}
	return e.askGuest(ctx, p, stream)
}

func (e *Engine) askGuest(ctx context.Context, p *place, stream *net.UnixConn) (wire.ProcessList, error) {
	defer stream.Close()
	if p.paused {
		return wire.ProcessList{}, nil
	}
	if p.unreachable {
		return wire.ProcessList{}, e.unreachable(ctx, p, nil)
	}
	list, err := wire.RunningInside(ctx, stream)
	if err == nil || ctx.Err() != nil {
		return list, err
	}
	if kind := fault.KindOf(err); kind == fault.Unsupported {
		return wire.ProcessList{}, nil
	}
	if state, _ := e.state(ctx, p.record); state != sandbox.Running && state != sandbox.Unreachable {
		return wire.ProcessList{}, nil // it has just ended
	}
	return wire.ProcessList{}, fault.Wrap("", err, "cannot ask what runs in sandbox %q", p.record.Name).
		WithHint("litterbox stop %s", p.record.Name)
}

func (e *Engine) pausedByUser(ctx context.Context, p *place) bool {
	lease, err := e.lease(ctx, p)
	return err == nil && lease != nil && lease.PausedFor == sandbox.PausedByUser
}

// mayEnd decides whether work may be ended for verb, which is "merge" or
// "delete": it may when that was asked for, or when confirm says so.
func mayEnd(name, verb string, all []Work, asked bool, confirm func([]Work) (bool, error)) error {
	if len(all) == 0 || asked {
		return nil
	}
	if confirm == nil {
		hint := "end it, or litterbox %s %s --stop"
		if verb == "merge" {
			hint += ", or litterbox apply " + name
		}
		return fault.New(fault.Conflict, "cannot %s sandbox %q while it is at work: %s", verb, name, nameWork(all)).
			WithHint(hint, verb, name)
	}
	yes, err := confirm(all)
	if err == nil && !yes {
		err = fault.New(fault.Canceled, "cannot %s sandbox %q: it is at work, and goes on", verb, name)
	}
	return err
}

// self is this process, as records name it.
func self() (sandbox.Process, error) {
	me, err := process.Identify(os.Getpid())
	if err != nil {
		return me, fault.Wrap(fault.Internal, err, "cannot identify this process")
	}
	return me, nil
}
