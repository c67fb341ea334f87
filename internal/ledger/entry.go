// Package ledger is what calls of models have cost, on disk: JSON Lines to which
// only is appended, one file for each month, shared by all sandboxes of a user. A
// line reserves the most that a call may cost before the call is sent, and a
// second one settles it; if the process ends in between, the first one stays and
// counts. Both are flushed before they count.
//
// Budgets are kept here, because checking the rest and reserving must be one step
// for all keepers at once: [Book.Reserve]. The package decides nothing about
// prices and reads no traffic. Start reading at [Entry].
package ledger

import (
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/meter"
)

// Version is that of the lines. A newer program reads older ones; an older one
// skips newer ones, except that they count at the most that they say they cost.
const Version = 1

// Kind is what a line is about.
type Kind string

// The kinds.
const (
	Reserved Kind = "reserved" // before a call: the most that it may cost
	Settled  Kind = "settled"  // after it
	Compute  Kind = "compute"  // time of the processor, so far, of one start of a sandbox
)

// How a call ended.
const (
	Exact  = "exact"  // the answer says its cost
	Cut    = "cut"    // it ended before that: up to the reservation
	Unsent = "unsent" // nothing was charged: it was not sent, or failed
)

// Entry is one line.
type Entry struct {
	Version   int       `json:"version"`
	Kind      Kind      `json:"kind"`
	ID        string    `json:"id"` // of the call, or of the start of the sandbox
	Time      time.Time `json:"time"`
	SandboxID string    `json:"sandbox_id"`
	Sandbox   string    `json:"sandbox"`
	// Repository is the common git directory.
	Repository string     `json:"repository"`
	Host       string     `json:"host,omitempty"`
	Wire       meter.Wire `json:"wire,omitempty"`
	Model      string     `json:"model,omitempty"`
	// MaxTokens and MaxCost are the reservation; no MaxCost means that the model
	// has no price.
	MaxTokens int64        `json:"max_tokens,omitempty"`
	MaxCost   *meter.Money `json:"max_cost_nano_usd,omitempty"`
	// Usage and Cost are those of a settled call, as far as is known.
	Usage  *meter.Usage  `json:"usage,omitempty"`
	Cost   *meter.Money  `json:"cost_nano_usd,omitempty"`
	End    string        `json:"end,omitempty"`
	Status int           `json:"status,omitempty"` // of the answer
	Took   time.Duration `json:"took_ns,omitempty"`
	// CPU and Running are those of one start of a sandbox, so far.
	CPU     time.Duration `json:"cpu_ns,omitempty"`
	Running time.Duration `json:"running_ns,omitempty"`
}

// Day is the day of a moment, by the clock of the human.
func Day(t time.Time) string { return t.Local().Format(time.DateOnly) }
