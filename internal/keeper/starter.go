package keeper

import (
	"context"
	"encoding/json"
	"io"

	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// Starter starts keepers, each as a process of its own or, in tests, as a part
// of this one (package keeper/inprocess). It is safe for concurrent use.
type Starter interface {
	// Start begins to start the keeper of the sandbox in state directory dir,
	// from the program that its driver needs, with exactly the environment env.
	// The keeper does nothing before it has
	// its order. Either Command or Abandon must be called on the result.
	Start(driver, dir string, env []string) (Starting, error)

	// End ends the keeper of sandbox id at once, as kill -9 does; its place goes
	// on. holder is its holder according to the lease. It reports whether there
	// was one.
	End(id string, holder sandbox.Process) (ended bool, err error)
}

// Starting is a keeper that waits for its order.
type Starting interface {
	// Command gives the order and returns the report; progress, which may be nil,
	// hears what comes before it, one call at a time. It fails with ErrSilent when
	// the keeper ends without one, and when ctx ends, which ends the keeper too.
	Command(ctx context.Context, order Order, progress func(Progress)) (Report, error)

	// Abandon ends a keeper that gets no order.
	Abandon()
}

// ReadReport reads reports up to the last one.
func ReadReport(r io.Reader, progress func(Progress)) (Report, error) {
	reports := json.NewDecoder(r)
	for {
		var report Report
		if err := reports.Decode(&report); err != nil {
			return Report{}, ErrSilent
		}
		if report.Progress == nil {
			return report, nil
		}
		if progress != nil {
			progress(*report.Progress)
		}
	}
}

// ErrSilent is the error of a keeper that ended without a report.
const ErrSilent = silent("the keeper ended without a report")

type silent string

func (s silent) Error() string { return string(s) }
