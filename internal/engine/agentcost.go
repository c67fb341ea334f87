package engine

import (
	"context"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/ledger"
	"github.com/litterbox-sandbox/litterbox/internal/meter"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// settling bounds the wait for the figure of a call that ends with its client.
const settling = 10 * time.Second

// spent is what a sandbox's model calls have cost so far. A ledger that cannot be
// read counts nothing: a run does not fail for it.
func (e *Engine) spent(id string) ledger.Row {
	rows, err := ledger.Totals(e.ledgerDir())
	if err != nil {
		return ledger.Row{}
	}
	return rows[id]
}

// metered is the cost since before; nil where nothing was counted.
func (e *Engine) metered(ctx context.Context, id string, before ledger.Row) *sandbox.Metered {
	now := e.spent(id)
	for end := time.Now().Add(settling); now.Open > before.Open && time.Now().Before(end) && ctx.Err() == nil; now = e.spent(id) {
		time.Sleep(runPoll)
	}
	if now.Calls <= before.Calls {
		return nil
	}
	return &sandbox.Metered{
		Calls: now.Calls - before.Calls, Input: now.Input - before.Input, Output: now.Output - before.Output,
		CacheRead: now.CacheRead - before.CacheRead, CacheWrite: now.CacheWrite - before.CacheWrite,
		CostNano: int64(now.Cost - before.Cost), Unpriced: now.Unpriced - before.Unpriced, Open: max(0, now.Open-before.Open),
	}
}

// CostOf is what a run's model calls cost, as counted on the host; nil where
// nothing was counted.
func CostOf(run Run) *Cost {
	m := run.Metered
	if m == nil {
		return nil
	}
	return &Cost{
		Calls: m.Calls, Usage: meter.Usage{Input: m.Input, Output: m.Output, CacheRead: m.CacheRead, CacheWrite: m.CacheWrite},
		Cost: meter.Money(m.CostNano), Unpriced: m.Unpriced, Open: m.Open,
	}
}
