package keeper

import (
	"context"
	"slices"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// Reached is a limit that was reached, and what was done about it.
type Reached struct {
	Limit string    `json:"limit"` // as in the event limit.reached
	At    time.Time `json:"at"`
	Text  string    `json:"text"` // one sentence for humans
}

// The names of the limits in Reached and the event limit.reached.
const (
	ReachedMemory = "oom"
	ReachedPIDs   = "pids"
	ReachedDisk   = "disk"
	ReachedTime   = "time"
	ReachedBudget = "budget"
)

// reachedList is the result of OpCheck.
type reachedList struct {
	Reached []Reached `json:"reached"`
}

// Check has a keeper look now, and returns the limits reached lately.
func Check(ctx context.Context, s wire.Stream) ([]Reached, error) {
	var list reachedList
	err := wire.AskFor(ctx, s, wire.Request{Op: OpCheck}, &list)
	return list.Reached, err
}

// reachedKept is how many a keeper remembers.
const reachedKept = 10

// report remembers that a limit was reached and records it, unless there were
// too many lately: programs inside can cause it as often as they like.
func (s *supervisor) report(limit, text string) {
	s.found = append(s.found, Reached{limit, time.Now(), text})
	s.found = s.found[max(0, len(s.found)-reachedKept):]
	if s.budget.take() {
		s.k.record(sandbox.EventLimit, map[string]string{"limit": limit, "action": text})
	}
}

func (s *supervisor) recent() []Reached {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.found)
}

// budget bounds how many events are recorded: several at once, then one now and
// then.
type budget struct {
	left int
	last time.Time
}

const (
	budgetMost  = 20
	budgetEvery = 10 * time.Second
)

func newBudget() budget { return budget{left: budgetMost, last: time.Now()} }

func (b *budget) take() bool {
	if more := int(time.Since(b.last) / budgetEvery); more > 0 {
		b.left, b.last = min(budgetMost, b.left+more), time.Now()
	}
	if b.left == 0 {
		return false
	}
	b.left--
	return true
}
