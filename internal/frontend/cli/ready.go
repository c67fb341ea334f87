package cli

import (
	"context"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// readyPatience bounds the wait for all services of a sandbox.
const readyPatience = 5 * time.Minute

// awaiting is engine.AwaitServices.
type awaiting func(ctx context.Context, dir, name string, patience time.Duration) ([]engine.NotReady, error)

// awaitServices waits for services that say when they are ready. One that fails
// is an error that names it, below the end of its log.
func (c *console) awaitServices(ctx context.Context, await awaiting, dir, name string) error {
	failed, err := await(ctx, dir, name, readyPatience)
	if err != nil || len(failed) == 0 {
		return err
	}
	var names []string
	for _, s := range failed {
		about := string(s.State)
		if s.Problem != "" {
			about += ": " + s.Problem
		}
		c.note("service %s is not ready (%s)", s.Name, about)
		for _, line := range s.Log {
			c.note("  %s | %s", s.Name, line)
		}
		names = append(names, s.Name)
	}
	return fault.New(fault.Unavailable, "sandbox %q runs, but some of its services do not: %s", name, strings.Join(names, ", ")).
		WithHint("litterbox service %s logs %s", name, names[0])
}
