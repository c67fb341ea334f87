package engine

import (
	"context"

	"github.com/litterbox-sandbox/litterbox/internal/caller"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// TaskFlatten makes one whole tree of the layers of a sandbox's base, for the
// sandboxes that come.
const TaskFlatten = "flatten"

// flattenLater has the layers of a new sandbox made one when a few lie above each
// other. A failure to start it costs time later, and nothing now.
func (e *Engine) flattenLater(ctx context.Context, p *place) {
	if p.flatten && e.Later != nil {
		_ = e.Later(caller.Lasting(callerOf(ctx).Env), TaskFlatten, p.record.ID)
	}
}

// Background does what [Options.Later] put off.
func (e *Engine) Background(ctx context.Context, task, sandboxID string) error {
	if task != TaskFlatten {
		return fault.New(fault.Unsupported, "cannot do %q in the background", task)
	}
	record, err := e.sandbox(ctx, sandboxID)
	if err != nil {
		return err
	}
	p, err := e.open(ctx, record)
	if err != nil {
		return err
	}
	return e.cache(record.GitDir).Flatten(ctx, p.repo, record.BaseTree, e.layerOwner(p))
}
