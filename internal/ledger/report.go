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
	// Open counts calls without a final figure: those under way, and those cut
	// off. OpenCost is the most that they may have cost beyond their share of
	// Cost.
	Open     int64       `json:"open_calls"`
	OpenCost meter.Money `json:"open_cost_nano_usd"`
	// Compute is separate: processor time, and how long sandboxes ran.
	CPU     time.Duration `json:"cpu_ns"`
	Running time.Duration `json:"running_ns"`
}

// Keys of a call, to group a report by.
type Keys struct {
	SandboxID, Sandbox, Repository, Model, Day string
}

// Group is a row with its keys.
type Group struct {
	Keys
	Row
}

// Report adds up the entries that want keeps, by the keys that key leaves. A call
// has the model of its answer and the day on which it began.
func Report(dir string, want func(Entry) bool, key func(Keys) Keys) ([]Group, error) {
	sums := newSums(want, key)
	err := Read(dir, func(e Entry) bool {
		sums.take(e)
		return true
	})
	return sums.groups(), err
}

// sums add up entries, in the order of the ledger.
type sums struct {
	want   func(Entry) bool
	key    func(Keys) Keys
	rows   map[Keys]*Row
	open   map[string]Entry // reserved and not settled
	starts map[string]Entry // the newest of each start of a sandbox
}

func newSums(want func(Entry) bool, key func(Keys) Keys) *sums {
	return &sums{want: want, key: key, rows: map[Keys]*Row{}, open: map[string]Entry{}, starts: map[string]Entry{}}
}

func (s *sums) row(rows map[Keys]*Row, k Keys) *Row {
	k = s.key(k)
	if rows[k] == nil {
		rows[k] = &Row{}
	}
	return rows[k]
}

func (s *sums) take(e Entry) {
	switch e.Kind {
	case Reserved:
		if s.want(e) {
			s.open[e.ID] = e
		}
	case Settled:
		begun, known := s.open[e.ID]
		if !known {
			return
		}
		delete(s.open, e.ID)
		s.row(s.rows, keysOf(begun, e.Model)).settle(begun, e)
	case Compute:
		// Each is the sum since the start; the day of a part is that of its line.
		before := s.starts[e.ID]
		if s.want(e) {
			into := s.row(s.rows, keysOf(e, ""))
			into.CPU += max(0, e.CPU-before.CPU)
			into.Running += max(0, e.Running-before.Running)
		}
		s.starts[e.ID] = e
	}
}

// groups are the rows, with the calls that are open now.
func (s *sums) groups() []Group {
	rows := make(map[Keys]*Row, len(s.rows))
	for k, r := range s.rows {
		whole := *r
		rows[k] = &whole
	}
	for _, e := range s.open {
		into := s.row(rows, keysOf(e, e.Model))
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
	return groups
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

// Add is the sum of both.
func (r Row) Add(s Row) Row {
	return Row{
		Calls: meter.Sum(r.Calls, s.Calls), Usage: r.Usage.Add(s.Usage), Cost: addMoney(r.Cost, s.Cost), Unpriced: meter.Sum(r.Unpriced, s.Unpriced),
		Open: meter.Sum(r.Open, s.Open), OpenCost: addMoney(r.OpenCost, s.OpenCost), CPU: r.CPU + s.CPU, Running: r.Running + s.Running,
	}
}
