package keeper

import (
	"context"

	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// Starter starts keepers, each as a process of its own or, in tests, as a part
// of this one (package keeper/inprocess). It is safe for concurrent use.
type Starter interface {
	// Start begins to start the keeper of the sandbox in state directory dir,
	// from the program that its driver needs, with exactly the environment env.
	// The keeper does nothing before it has
	// its order. Either Command or Abandon of what is returned must follow.
	Start(driver, dir string, env []string) (Starting, error)

	// End ends the keeper of sandbox id at once, as kill -9 does; its place goes
	// on. holder is what the lease says of it. It reports whether there was one.
	End(id string, holder sandbox.Process) (ended bool, err error)
}

// Starting is a keeper that waits for its order.
type Starting interface {
	// Command gives the order and returns the report. It fails with ErrSilent
	// when the keeper ended without one, and when ctx ends, which ends the
	// keeper too.
	Command(ctx context.Context, order Order) (Report, error)

	// Abandon ends a keeper that gets no order.
	Abandon()
}

// ErrSilent is the error of a keeper that ended without a report.
const ErrSilent = silent("the keeper ended without a report")

type silent string

func (s silent) Error() string { return string(s) }
