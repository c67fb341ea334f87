package engine

import (
	"context"
	"slices"
	"strconv"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// diffFrom gives the commit that a comparison begins at.
func (e *Engine) diffFrom(ctx context.Context, p *place, request DiffRequest) (string, error) {
	switch {
	case request.Since != "" && request.With != "":
		return "", fault.New(fault.Invalid, "cannot compare both with a step and with another sandbox").
			WithHint("name one of the two")
	case request.With != "":
		other, err := e.find(ctx, request.Dir, request.With)
		if err != nil {
			return "", err
		}
		defer e.tell(other)
		return e.presentToSee(ctx, other)
	case request.Since == "":
		return p.record.From(), nil
	case request.Since == "milestone":
		return p.record.Milestone, nil
	}
	return p.commitOf(request.Since, "since")
}

// diffTo gives the commit that a comparison ends with.
func (e *Engine) diffTo(ctx context.Context, p *place, to string) (string, error) {
	if to == "" {
		return e.presentToSee(ctx, p)
	}
	return p.commitOf(to, "to")
}

// commitOf is the commit of a step, or the one that a snapshot belongs to.
func (p *place) commitOf(name, what string) (string, error) {
	number, err := strconv.Atoi(name)
	if err != nil {
		snapshot, err := p.findSnapshot(name)
		if fault.KindOf(err) == fault.NotFound {
			return "", fault.New(fault.Invalid, "cannot compare %s %q: it is neither \"milestone\" nor a step's number nor a snapshot", what, name).
				WithHint("litterbox log %s, or litterbox snapshots %s", p.record.Name, p.record.Name)
		}
		if err != nil {
			return "", err
		}
		return snapshot.Commit, nil
	}
	steps, err := p.store.Iterations(p.record.ID)
	if err != nil {
		return "", err
	}
	at := slices.IndexFunc(steps, func(it sandbox.Iteration) bool { return it.Number == number })
	if at < 0 || steps[at].Commit == "" {
		return "", fault.New(fault.NotFound, "cannot compare %s step %d: sandbox %q has no commit of that number", what, number, p.record.Name).
			WithHint("litterbox log %s", p.record.Name)
	}
	return steps[at].Commit, nil
}
