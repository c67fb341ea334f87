package engine

import (
	"context"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// EventsRequest asks for what happened.
type EventsRequest struct {
	Dir    string    // with All not set: any directory of the repository
	All    bool      // of all repositories
	Name   string    // of one sandbox only; empty means of all
	After  uint64    // only events with a higher number
	Since  time.Time // only events that are not older
	Follow bool      // wait for more until ctx ends
}

// Events hands what happened to each, oldest first. An error of each ends it.
func (e *Engine) Events(ctx context.Context, request EventsRequest, each func(sandbox.Event) error) error {
	gitDir, name := "", ""
	var err error
	if !request.All {
		if gitDir, err = gitDirOf(ctx, request.Dir); err != nil {
			return err
		}
	}
	if request.Name != "" {
		// A deleted sandbox still has a past: the name need not exist.
		if name, err = sandbox.Slug(request.Name); err != nil {
			return err
		}
	}
	if request.Follow && !request.All {
		e.sayMissing(ctx, request.Dir, name)
	}
	var problem error
	known := name == "" || request.After > 0
	take := func(event sandbox.Event) bool {
		if gitDir != "" && event.Repository != gitDir || name != "" && event.Sandbox != name {
			return true
		}
		known = true
		if event.Time.Before(request.Since) {
			return true
		}
		problem = each(event)
		return problem == nil
	}
	if request.Follow {
		err = e.watch.Events(ctx, request.After, take)
	} else {
		err = e.Store.Events(request.After, take)
	}
	if problem != nil {
		return problem
	}
	if err == nil && !known && !request.Follow && !request.All {
		if exists, err := e.Exists(ctx, request.Dir, name); err == nil && !exists {
			return NoSandbox(name, e.sandboxNames(ctx, request.Dir))
		}
	}
	return err
}

// Cycles lists the runs of a sandbox, oldest first.
func (e *Engine) Cycles(ctx context.Context, dir, name string) ([]sandbox.Cycle, error) {
	p, err := e.find(ctx, dir, name)
	if err != nil {
		return nil, err
	}
	return p.store.Cycles(ctx, p.record.ID, 0)
}

// event makes one event; its data are keys and values in turn.
func event(kind sandbox.EventType, cycle int, data ...string) *sandbox.Event {
	made := &sandbox.Event{Type: kind, Cycle: cycle}
	for i := 0; i+1 < len(data); i += 2 {
		if data[i+1] == "" {
			continue
		}
		if made.Data == nil {
			made.Data = map[string]string{}
		}
		made.Data[data[i]] = shortened(data[i+1])
	}
	return made
}

// eventValue is how much of a value an event keeps, in bytes.
const eventValue = 1 << 10

func shortened(value string) string {
	if len(value) <= eventValue {
		return value
	}
	return value[:eventValue] + "…"
}

// emit records what happened to the sandbox. A failure to record it is a note: it
// has happened all the same.
func (e *Engine) emit(ctx context.Context, p *place, events ...*sandbox.Event) {
	for _, one := range events {
		one.Sandbox, one.SandboxID, one.Repository = p.record.Name, p.record.ID, p.record.GitDir
	}
	ctx, stop := lingering(ctx)
	defer stop()
	if err := p.store.Emit(ctx, events...); err != nil {
		p.note("this is not in the event log: " + fault.Wrap("", err, "cannot record an event").Error())
	}
}

// lingering is a context for recording something that has happened. It ends a
// moment after ctx: an interrupted command leaves its trace while others write, and
// is not held up by one that hangs. Where ctx never ends it is bounded too.
func lingering(ctx context.Context) (longer context.Context, stop func()) {
	longer, cancel := context.WithTimeout(context.WithoutCancel(ctx), longest)
	unwatch := context.AfterFunc(ctx, func() { time.AfterFunc(linger, cancel) })
	return longer, func() { unwatch(); cancel() }
}

// linger is how long the wait for a lock may outlast its context, longest how long
// it may last at all.
const (
	linger  = time.Second
	longest = 5 * time.Second
)

// advance moves a cycle through states, in order, and records the last.
func (e *Engine) advance(ctx context.Context, p *place, cycle *sandbox.Cycle, states ...sandbox.CycleState) error {
	var events []*sandbox.Event
	for _, state := range states {
		cycle.State = state
		events = append(events, event(sandbox.CycleEvent(state), cycle.ID))
	}
	err := p.store.SaveCycle(p.record.ID, cycle)
	if err == nil {
		e.emit(ctx, p, events...)
	}
	return err
}
