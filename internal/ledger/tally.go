package ledger

import (
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/meter"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// Amount is an amount that counts against budgets.
type Amount struct {
	Cost   meter.Money
	Tokens int64
}

func (a Amount) add(b Amount) Amount {
	return Amount{meter.Money(meter.Sum(int64(a.Cost), int64(b.Cost))), meter.Sum(a.Tokens, b.Tokens)}
}

// less subtracts an amount that was added before.
func (a Amount) less(b Amount) Amount {
	return Amount{max(0, a.Cost-b.Cost), max(0, a.Tokens-b.Tokens)}
}

// beyond reports in which unit a is more than the budget allows.
func (a Amount) beyond(b sandbox.Budget) (unit string, over bool) {
	switch {
	case b.USD > 0 && int64(a.Cost) > b.USD:
		return "USD", true
	case b.Tokens > 0 && a.Tokens > b.Tokens:
		return "tokens", true
	}
	return "", false
}

// tally adds up entries for budgets: the cost of each sandbox in all, and of all
// of them on each of the last days.
type tally struct {
	open      map[string]held // reserved and not settled
	sandboxes map[string]Amount
	days      map[string]Amount
}

type held struct {
	amount       Amount
	sandbox, day string
}

func newTally() *tally {
	return &tally{open: map[string]held{}, sandboxes: map[string]Amount{}, days: map[string]Amount{}}
}

// take adds one more entry, in the order of the file. A call counts on the day on
// which it was reserved.
func (t *tally) take(e Entry) {
	switch e.Kind {
	case Reserved:
		if _, twice := t.open[e.ID]; twice {
			return
		}
		h := held{amount: Amount{Tokens: max(0, e.MaxTokens)}, sandbox: e.SandboxID, day: Day(e.Time)}
		if e.MaxCost != nil {
			h.amount.Cost = max(0, *e.MaxCost)
		}
		t.open[e.ID] = h
		t.count(h, h.amount)
	case Settled:
		h, known := t.open[e.ID]
		if !known {
			return // a call without a reservation is not settled, nor one twice
		}
		delete(t.open, e.ID)
		counts := settled(e, h.amount)
		t.sandboxes[h.sandbox] = t.sandboxes[h.sandbox].less(h.amount)
		t.days[h.day] = t.days[h.day].less(h.amount)
		t.count(h, counts)
	}
}

func (t *tally) count(h held, a Amount) {
	t.sandboxes[h.sandbox] = t.sandboxes[h.sandbox].add(a)
	t.days[h.day] = t.days[h.day].add(a)
}

// settled is the final amount of a call. A cut-off call counts as reserved,
// unless more was seen.
func settled(e Entry, reserved Amount) Amount {
	var seen Amount
	if e.Usage != nil {
		seen.Tokens = e.Usage.Tokens()
	}
	priced := e.Cost != nil
	if priced {
		seen.Cost = max(0, *e.Cost)
	}
	switch {
	case e.End == Unsent:
		return Amount{}
	case e.End == Exact && priced:
		return seen
	case e.End == Exact:
		return Amount{Cost: reserved.Cost, Tokens: seen.Tokens}
	}
	return Amount{max(seen.Cost, reserved.Cost), max(seen.Tokens, reserved.Tokens)}
}

// forget drops days that are over: nothing more is reserved on them.
func (t *tally) forget(now time.Time) {
	old := Day(now.AddDate(0, 0, -2))
	for day := range t.days {
		if day < old {
			delete(t.days, day)
		}
	}
}
