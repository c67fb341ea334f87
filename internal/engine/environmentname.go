package engine

import (
	"context"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// findAny finds a sandbox of the repository, or else the live environment of that
// name, of any project: its name is made from its path. Only a human at a command
// line reaches environments; others are told that no such sandbox exists. It
// returns the engine that the result belongs to.
func (e *Engine) findAny(ctx context.Context, dir, name string) (*Engine, *place, error) {
	p, err := e.find(ctx, dir, name)
	if err == nil || !callerOf(ctx).Human || fault.KindOf(err) != fault.NotFound {
		return e, p, err
	}
	other, envErr := e.environments()
	if envErr != nil {
		return e, nil, err
	}
	records, _, envErr := other.Store.Sandboxes()
	if envErr != nil {
		return e, nil, err
	}
	for _, record := range records {
		if record.Name == name && record.State != sandbox.Creating && record.State != sandbox.Deleting {
			p, err := other.livePlace(ctx, record)
			return other, p, err
		}
	}
	return e, nil, err
}
