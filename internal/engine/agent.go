package engine

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/keeper"
	"github.com/litterbox-sandbox/litterbox/internal/process"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// A hold is renewed every HoldBeat by its holder and expires after three misses: a
// server that stopped or hangs must not keep a sandbox for ever.
const (
	HoldBeat   = 30 * time.Second
	holdExpiry = sandbox.HoldSilence
)

// Hold is one agent's claim to a sandbox. One agent works in a sandbox at a
// time; what a human does by commands needs no hold.
type Hold struct {
	ID      string // of the sandbox
	Name    string
	Path    string // where its project is inside
	Session string
}

// Hold claims the sandbox for an agent's session. It fails with fault.Conflict
// while another live session with a fresh heartbeat holds it; a hold whose holder
// is gone is taken over, and a note says so.
func (e *Engine) Hold(ctx context.Context, dir, name string, who Actor) (Hold, []string, error) {
	p, err := e.find(ctx, dir, name)
	if err != nil {
		return Hold{}, nil, err
	}
	return e.hold(ctx, p, who)
}

func (e *Engine) hold(ctx context.Context, p *place, who Actor) (Hold, []string, error) {
	unlock, err := p.store.Lock(ctx, p.record.ID, "agent")
	if err != nil {
		return Hold{}, nil, err
	}
	defer unlock()
	held, err := p.store.Agent(p.record.ID)
	if err != nil {
		return Hold{}, nil, err
	}
	var notes []string
	switch gone := e.holderGone(held); {
	case held == nil || held.Session == who.Session:
	case gone == "":
		return Hold{}, nil, fault.New(fault.Conflict, "sandbox %q is in use by %s", p.record.Name, describeAgent(held))
	default:
		notes = append(notes, "taken over from "+describeAgent(held)+": "+gone)
	}
	self, err := process.Identify(os.Getpid())
	if err != nil {
		return Hold{}, nil, fault.Wrap(fault.Unsupported, err, "cannot identify this process")
	}
	if err := p.agentSeen(); err != nil {
		return Hold{}, nil, err
	}
	now := e.now()
	err = p.store.SaveAgent(p.record.ID, &sandbox.Agent{
		Session: who.Session, Client: who.Client, ClientVersion: who.Version, Holder: self,
		AcquiredAt: now, Heartbeat: now, ExpiresAt: now.Add(holdExpiry), Beat: e.moment(),
	})
	return Hold{ID: p.record.ID, Name: p.record.Name, Path: p.record.Repository, Session: who.Session}, notes, err
}

// agentSeen notes that an agent works in the sandbox: a sandbox that is no longer
// used is stopped eventually.
func (p *place) agentSeen() error {
	path := p.path(keeper.AgentSeen)
	if fileExists(path) {
		return nil
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot note that an agent works in sandbox %q", p.record.Name)
	}
	return nil
}

// agentOf is the agent that holds a sandbox at this moment; nil when none does.
func (e *Engine) agentOf(record *sandbox.Sandbox) *sandbox.Agent {
	held, err := e.Store.Agent(record.ID)
	if err != nil || e.holderGone(held) != "" {
		return nil // an unreadable record blocks no one either
	}
	return held
}

// holderGone says why a hold can be taken over; empty when it cannot.
func (e *Engine) holderGone(held *sandbox.Agent) string {
	switch {
	case held == nil:
		return "it was not held"
	case !process.Alive(held.Holder):
		return "its process has ended"
	case held.Expired(e.moment(), e.now()):
		return "it has given no sign of life since " + held.Heartbeat.Format(time.TimeOnly)
	}
	return ""
}

func describeAgent(a *sandbox.Agent) string {
	name := a.Client
	if name == "" {
		name = "an agent"
	}
	if a.ClientVersion != "" {
		name += " " + a.ClientVersion
	}
	return name + " (process " + itoa(a.Holder.PID) + ")"
}

// Renew shows that the hold's session lives. It fails with fault.Conflict when
// another session has taken the sandbox over, and with fault.NotFound when the
// sandbox is gone. It is called before every tool call and every HoldBeat.
func (e *Engine) Renew(ctx context.Context, hold Hold) error {
	return e.held(ctx, hold, func(held *sandbox.Agent) error {
		beat := e.moment()
		if age, known := held.Beat.Age(beat); known && age < HoldBeat/3 {
			return nil
		}
		now := e.now()
		held.Heartbeat, held.ExpiresAt, held.Beat = now, now.Add(holdExpiry), beat
		return e.Store.SaveAgent(hold.ID, held)
	})
}

// Release gives the sandbox up. It is not an error when another session has it by now
// or it is gone.
func (e *Engine) Release(ctx context.Context, hold Hold) error {
	err := e.held(ctx, hold, func(*sandbox.Agent) error { return e.Store.RemoveAgent(hold.ID) })
	if kind := fault.KindOf(err); kind == fault.Conflict || kind == fault.NotFound {
		return nil
	}
	return err
}

// held calls change under the lock while the session has the sandbox.
func (e *Engine) held(ctx context.Context, hold Hold, change func(*sandbox.Agent) error) error {
	if _, err := os.Stat(e.Store.SandboxDir(hold.ID)); errors.Is(err, os.ErrNotExist) {
		return e.goneFrom(ctx, hold)
	}
	unlock, err := e.Store.Lock(ctx, hold.ID, "agent")
	if err != nil {
		return err
	}
	defer unlock()
	held, err := e.Store.Agent(hold.ID)
	switch {
	case err != nil:
		return err
	case held == nil:
		return fault.New(fault.Conflict, "sandbox %q is no longer held by this session", hold.Name)
	case held.Session != hold.Session:
		return fault.New(fault.Conflict, "sandbox %q was taken over by %s", hold.Name, describeAgent(held))
	}
	return change(held)
}
