package ledger

import (
	"cmp"
	"slices"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/meter"
)

// Row adds up calls.
type Row struct {
	Calls int64 `json:"calls"`
	meter.Usage
	Cost meter.Money `json:"cost_nano_usd"`
	// Unpriced counts the tokens of models without a price, which Cost leaves out.
	Unpriced int64 `json:"unpriced_tokens"`
	// Open counts calls of which no final figure is known: those under way, and
	// those that were cut off. OpenCost is what they may have cost at most,
	// beyond what Cost has of them.
	Open     int64       `json:"open_calls"`
	OpenCost meter.Money `json:"open_cost_nano_usd"`
	// Compute is beside: time of the processor, and how long sandboxes ran.
	CPU     time.Duration `json:"cpu_ns"`
	Running time.Duration `json:"running_ns"`
}

// Keys of a call, by which a report groups.
type Keys struct {
	SandboxID, Sandbox, Repository, Model, Day string
}

// Group is a row with what it is of.
type Group struct {
	Keys
	Row
}

// Report adds up the entries that want keeps, by what key leaves of their keys.
// A call has the model of its answer and the day on which it began.
func Report(dir string, want func(Entry) bool, key func(Keys) Keys) ([]Group, error) {
	rows := map[Keys]*Row{}
	row := func(k Keys) *Row {
		k = key(k)
		if rows[k] == nil {
			rows[k] = &Row{}
		}
		return rows[k]
	}
	open := map[string]Entry{}
	starts := map[string]Entry{}
	err := Read(dir, func(e Entry) bool {
		switch e.Kind {
		case Reserved:
			if want(e) {
				open[e.ID] = e
			}
		case Settled:
			begun, known := open[e.ID]
			if !known {
				return true
			}
			delete(open, e.ID)
			row(keysOf(begun, e.Model)).settle(begun, e)
		case Compute:
			// Each is the sum since the start; the day of a part is that of its line.
			before := starts[e.ID]
			if want(e) {
				into := row(keysOf(e, ""))
				into.CPU += max(0, e.CPU-before.CPU)
				into.Running += max(0, e.Running-before.Running)
			}
			starts[e.ID] = e
		}
		return true
	})
	for _, e := range open {
		into := row(keysOf(e, e.Model))
		into.Calls++
		into.Open++
		if e.MaxCost != nil {
			into.OpenCost = addMoney(into.OpenCost, *e.MaxCost)
		}
	}
	groups := make([]Group, 0, len(rows))
	for k, r := range rows {
		groups = append(groups, Group{k, *r})
	}
	slices.SortFunc(groups, func(a, b Group) int {
		return cmp.Or(cmp.Compare(a.Day, b.Day), cmp.Compare(b.Cost, a.Cost), cmp.Compare(a.Sandbox, b.Sandbox), cmp.Compare(a.Model, b.Model), cmp.Compare(a.SandboxID, b.SandboxID))
	})
	return groups, err
}

func keysOf(e Entry, model string) Keys {
	return Keys{SandboxID: e.SandboxID, Sandbox: e.Sandbox, Repository: e.Repository, Model: model, Day: Day(e.Time)}
}

func (r *Row) settle(begun, e Entry) {
	if e.End == Unsent {
		return
	}
	r.Calls++
	if e.Usage != nil {
		r.Usage = r.Usage.Add(*e.Usage)
		if e.Cost == nil {
			r.Unpriced = meter.Sum(r.Unpriced, e.Usage.Tokens())
		}
	}
	var cost meter.Money
	if e.Cost != nil {
		cost = max(0, *e.Cost)
		r.Cost = addMoney(r.Cost, cost)
	}
	if e.End != Exact {
		r.Open++
		if begun.MaxCost != nil {
			r.OpenCost = addMoney(r.OpenCost, max(0, *begun.MaxCost-cost))
		}
	}
}

func addMoney(a, b meter.Money) meter.Money { return meter.Money(meter.Sum(int64(a), int64(b))) }

// Add is both together.
func (r Row) Add(s Row) Row {
	return Row{
		Calls: meter.Sum(r.Calls, s.Calls), Usage: r.Usage.Add(s.Usage), Cost: addMoney(r.Cost, s.Cost), Unpriced: meter.Sum(r.Unpriced, s.Unpriced),
		Open: meter.Sum(r.Open, s.Open), OpenCost: addMoney(r.OpenCost, s.OpenCost), CPU: r.CPU + s.CPU, Running: r.Running + s.Running,
	}
}
