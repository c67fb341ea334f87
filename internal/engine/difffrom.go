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
		return e.present(ctx, other)
	case request.Since == "":
		return p.record.Base, nil
	case request.Since == "milestone":
		return p.record.Milestone, nil
	}
	number, err := strconv.Atoi(request.Since)
	if err != nil || number < 1 {
		return "", fault.New(fault.Invalid, "cannot compare since %q: it is neither \"milestone\" nor a step's number", request.Since)
	}
	steps, err := p.store.Iterations(p.record.ID)
	if err != nil {
		return "", err
	}
	at := slices.IndexFunc(steps, func(it sandbox.Iteration) bool { return it.Number == number })
	if at < 0 || steps[at].Commit == "" {
		return "", fault.New(fault.NotFound, "cannot compare since step %d: sandbox %q has no commit of that number", number, p.record.Name)
	}
	return steps[at].Commit, nil
}
