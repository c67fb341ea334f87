package engine

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/config"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/keeper"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/seal"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// Where a limit comes from: sandbox.Limit.From.
const (
	fromDefault    = "default"
	fromUser       = "user"
	fromRepository = "repository"
	fromCommand    = "command"
)

// defaultPIDs is far above what builds use and far below what a machine bears.
const defaultPIDs = 4096

// bounds are the limits where no file sets any: enough for any work, and too little
// for a bomb to take the machine with it. What the machine does not tell is not
// limited.
func bounds() sandbox.Limits {
	return sandbox.Limits{Memory: machineMemory() / 2, PIDs: defaultPIDs}
}

// limitsOf decides whose limits count, and where each comes from. The user's
// file sets what every sandbox gets and the most that a repository may ask
// for; where it is silent, more than the default takes the human's trust.
func limitsOf(user, repo sandbox.Limits, trusted bool) (limits sandbox.Limits, from map[string]string, notes []string) {
	limits, from = bounds(), map[string]string{}
	for _, name := range sandbox.LimitNames() {
		if limits.Get(name) != 0 {
			from[name] = fromDefault
		}
		if user.Get(name) != 0 {
			limits, from[name] = limits.With(name, user), fromUser
		}
		if repo.Get(name) == 0 {
			continue
		}
		if name == sandbox.LimitBudget && repo.Budget.Bounds() && user.Budget.Bounds() {
			// They may be of different units; the stricter one counts in each.
			if least := user.Budget.Least(repo.Budget); least != user.Budget {
				limits.Budget, from[name] = least, fromRepository
				continue
			}
		}
		asked := "limits." + name + " = " + repo.Text(name) + " in " + config.RepositoryFile
		switch {
		case !repo.Wider(name, limits), trusted && user.Get(name) == 0:
			limits, from[name] = limits.With(name, repo), fromRepository
		case user.Get(name) != 0:
			notes = append(notes, asked+" is more than your own configuration allows: "+limits.Text(name)+" applies")
		default:
			notes = append(notes, asked+" is more than the default and "+needsTrust)
		}
	}
	return limits, from, notes
}

// wanted lists the limits of a repository that only count with trust.
func wanted(user, repo sandbox.Limits) []string {
	var grants []string
	for _, name := range sandbox.LimitNames() {
		if repo.Get(name) != 0 && user.Get(name) == 0 && repo.Wider(name, bounds()) {
			grants = append(grants, "limits."+name+": "+repo.Text(name))
		}
	}
	return grants
}

// rules works out the limits of a sandbox from its configuration and from what was
// set for it alone.
func (p *place) rules(set sandbox.Limits) (keeper.Rules, error) {
	old, err := p.ownRules()
	if err != nil {
		return old, err
	}
	fresh := keeper.Rules{Set: set, Effective: p.config.Limits, From: map[string]string{}, IdlePause: p.config.IdlePause, IdleStop: p.config.IdleStop}
	for name, source := range p.from {
		fresh.From[name] = source
	}
	if fresh.Effective.Disk == 0 {
		// Worked out once: the space that the sandbox fills must not shrink its
		// share.
		if fresh.Effective.Disk = old.Effective.Disk; old.From[sandbox.LimitDisk] != fromDefault || fresh.Effective.Disk <= 0 {
			fresh.Effective.Disk = freeSpace(p.dir) / 2
		}
		fresh.From[sandbox.LimitDisk] = fromDefault
	}
	for _, name := range sandbox.LimitNames() {
		if set.Get(name) != 0 {
			fresh.Effective, fresh.From[name] = fresh.Effective.With(name, set), fromCommand
		}
	}
	return fresh, nil
}

// limit writes down the limits for the start that follows.
func (p *place) limit() error {
	old, err := p.ownRules()
	if err != nil {
		return err
	}
	rules, err := p.rules(old.Set)
	if err != nil {
		return err
	}
	return errors.Join(p.saveRules(rules), p.saveCosts())
}

// saveRules replaces the limits on disk in one step.
func (p *place) saveRules(rules keeper.Rules) error {
	data, err := seal.Encode(rules)
	temp := p.path("." + keeper.LimitsFile)
	if err == nil {
		err = os.WriteFile(temp, data, 0o600)
	}
	if err == nil {
		err = os.Rename(temp, p.path(keeper.LimitsFile))
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot write the limits of %s %q", p.kind(), p.record.Name)
	}
	return nil
}

// limitList shows rules as a list, with who enforces each while it runs.
func limitList(rules keeper.Rules, lease *sandbox.Lease) []sandbox.Limit {
	list := []sandbox.Limit{}
	for _, name := range sandbox.LimitNames() {
		text := rules.Effective.Text(name)
		if text == "" {
			continue
		}
		limit := sandbox.Limit{Name: name, Value: text, From: rules.From[name]}
		if lease != nil && text != sandbox.None {
			limit.By = lease.InForce[name]
		}
		list = append(list, limit)
	}
	return list
}

// LimitsRequest shows or changes the limits of one sandbox.
type LimitsRequest struct {
	Dir  string
	Name string
	// Set are changes as NAME=VALUE; the value "default" takes back what was
	// set for this sandbox. Without any nothing changes.
	Set []string
}

// Limits are those of one sandbox.
type Limits struct {
	Name      string          `json:"name"`
	Running   bool            `json:"running"`
	Limits    []sandbox.Limit `json:"limits"`
	IdlePause time.Duration   `json:"idle_pause_ns"` // 0: never
}

// Limits shows the limits of a sandbox, or changes them. While it runs a change
// is in force at once, or nothing changes.
func (e *Engine) Limits(ctx context.Context, request LimitsRequest) (Limits, error) {
	e, p, err := e.findAny(ctx, request.Dir, request.Name)
	if err != nil {
		return Limits{}, err
	}
	defer e.tell(p)
	if len(request.Set) > 0 {
		if err := e.setLimits(ctx, p, request.Set); err != nil {
			return Limits{}, err
		}
	}
	rules, err := p.ownRules()
	if err != nil {
		return Limits{}, err
	}
	view := Limits{Name: p.record.Name, IdlePause: rules.IdlePause}
	state, _ := e.state(ctx, p.record)
	var lease *sandbox.Lease
	if state == sandbox.Running || state == sandbox.Paused {
		view.Running = true
		if lease, err = e.lease(ctx, p); err != nil {
			return view, err
		}
	}
	view.Limits = limitList(rules, lease)
	return view, nil
}

func (e *Engine) setLimits(ctx context.Context, p *place, changes []string) (err error) {
	ctx, call, err := e.recordIn(ctx, p, "limits", map[string]any{"limits": changes})
	if err != nil {
		return err
	}
	defer func() { err = call.end("", nil, err) }()
	unlock, err := p.store.Lock(ctx, p.record.ID, "limits")
	if err != nil {
		return err
	}
	defer unlock()
	old, err := p.ownRules()
	if err != nil {
		return err
	}
	set, err := change(old.Set, changes)
	if err != nil {
		return err
	}
	if err := e.configure(ctx, p); err != nil {
		return err
	}
	fresh, err := p.rules(set)
	if err != nil {
		return err
	}
	state, _ := e.state(ctx, p.record)
	if state == sandbox.Running {
		// With a keeper that puts them in force.
		stream, err := e.running(ctx, p, false)
		if err != nil {
			return err
		}
		stream.Close()
	}
	if err := errors.Join(p.saveRules(fresh), p.saveCosts()); err != nil {
		return err
	}
	if err := p.tellKeeper(ctx, keeper.OpLimits); err != nil {
		return errors.Join(err, p.saveRules(old))
	}
	return nil
}

// change applies changes as they were typed.
func change(set sandbox.Limits, changes []string) (sandbox.Limits, error) {
	for _, typed := range changes {
		name, value, ok := strings.Cut(typed, "=")
		if !ok {
			return set, fault.New(fault.Invalid, "cannot change the limit %q: it is not of the form NAME=VALUE", typed).
				WithHint("memory=4GiB")
		}
		if value == fromDefault && slices.Contains(sandbox.LimitNames(), name) {
			set = set.With(name, sandbox.Limits{})
			continue
		}
		var err error
		if set, err = set.Parse(name, value); err != nil {
			return set, err
		}
	}
	return set, nil
}

// noteLimits says which limits a command has run into, after one that was ended
// by a signal or ran out of time.
func (e *Engine) noteLimits(ctx context.Context, p *place, request ExecRequest, exit wire.Exit, since time.Time) {
	for _, reached := range p.reached(ctx) {
		if reached.At.After(since) {
			p.note(reached.Text)
		}
	}
	rules, err := p.ownRules()
	most := rules.Effective.Time
	if err != nil || !exit.TimedOut || most <= 0 || request.Timeout > 0 && request.Timeout <= most {
		return
	}
	text := "a command reached its limit of time of " + rules.Effective.Text(sandbox.LimitTime) + ": " + firstLine(quoteCommand(request.Argv), "")
	e.emit(ctx, p, event(sandbox.EventLimit, 0, "limit", keeper.ReachedTime, "action", text))
	p.note(text)
}

// reached asks the keeper which limits were reached of late. An older keeper does
// not know, and without a keeper there is none to ask.
func (p *place) reached(ctx context.Context) []Reached {
	stream, err := p.dial(ctx)
	if err != nil {
		return nil
	}
	defer stream.Close()
	reached, err := keeper.Check(ctx, stream)
	if err != nil {
		return nil
	}
	return reached
}
