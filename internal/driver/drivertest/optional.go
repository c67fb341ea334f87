package drivertest

import (
	"context"
	"errors"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
)

// optional: what a driver declares, or refuses.
func optional() []Check {
	return []Check{
		{
			Name:   "pauses and resumes",
			Why:    "a policy is deployed while nothing in the place moves",
			Needs:  func(c driver.Capabilities) bool { return c.Pause },
			Run:    pausesAndResumes,
			Absent: refusesPause,
		},
		{
			Name:   "returns to a snapshot",
			Why:    "an iteration can be taken back",
			Needs:  func(c driver.Capabilities) bool { return c.Snapshot },
			Run:    returnsToASnapshot,
			Absent: refusesSnapshot,
		},
		{
			Name:   "measures",
			Why:    "listings and budgets show what a place really uses; an unmeasured value is negative, not zero",
			Needs:  func(c driver.Capabilities) bool { return c.Metrics },
			Run:    measures,
			Absent: refusesMetrics,
		},
	}
}

// stillTime is how long a command in a paused place is watched. A place that
// is paused cannot fail this on a slow machine: it never answers.
const stillTime = 200 * time.Millisecond

func pausesAndResumes(ctx context.Context, env *Env) error {
	return with(ctx, env, "pause", func(p *place) error {
		link, err := p.connect(ctx, p.driver)
		if err != nil {
			return err
		}
		defer link.Close()
		for range 2 { // idempotent
			if err := p.driver.Pause(ctx, p.lease, "contract"); err != nil {
				return wrong("cannot pause: %v", err)
			}
		}
		finished := make(chan error, 1)
		go func() {
			_, err := execute(ctx, link, command{argv: []string{"true"}})
			finished <- err
		}()
		moved := false
		select {
		case <-finished:
			moved = true
		case <-time.After(stillTime):
		}
		for range 2 {
			if err := p.driver.Resume(ctx, p.lease); err != nil {
				return wrong("cannot resume: %v", err)
			}
		}
		if moved {
			return wrong("a command runs in a paused place")
		}
		select {
		case err := <-finished:
			return err
		case <-time.After(settleTime):
			return wrong("a resumed place stands still")
		}
	})
}

func refusesPause(ctx context.Context, env *Env) error {
	return with(ctx, env, "nopause", func(p *place) error {
		return errors.Join(
			refused("Pause", p.driver.Pause(ctx, p.lease, "contract")),
			refused("Resume", p.driver.Resume(ctx, p.lease)))
	})
}

func refused(what string, err error) error {
	if !errors.Is(err, driver.ErrUnsupported) {
		return wrong("%s is not declared and answers %v, want ErrUnsupported", what, err)
	}
	return nil
}

func returnsToASnapshot(ctx context.Context, env *Env) error {
	return with(ctx, env, "snapshot", func(p *place) error {
		path := inside("state.txt")
		if err := p.write(ctx, path, "one"); err != nil {
			return err
		}
		snapshot, err := p.driver.Snapshot(ctx, p.lease, "before two")
		if err != nil {
			return wrong("cannot take a snapshot: %v", err)
		}
		if snapshot.Label != "before two" {
			return wrong("the snapshot is labelled %q", snapshot.Label)
		}
		if err := p.wants(ctx, path, "one"); err != nil {
			return wrong("after taking a snapshot: %v", err)
		}
		if err := p.write(ctx, path, "two"); err != nil {
			return err
		}
		if err := p.driver.Revert(ctx, p.lease, snapshot); err != nil {
			return wrong("cannot revert: %v", err)
		}
		return p.wants(ctx, path, "one")
	})
}

func refusesSnapshot(ctx context.Context, env *Env) error {
	return with(ctx, env, "nosnapshot", func(p *place) error {
		_, err := p.driver.Snapshot(ctx, p.lease, "contract")
		return errors.Join(
			refused("Snapshot", err),
			refused("Revert", p.driver.Revert(ctx, p.lease, driver.Snapshot{Label: "contract"})))
	})
}

func measures(ctx context.Context, env *Env) error {
	return with(ctx, env, "metrics", func(p *place) error {
		got, err := p.driver.CollectMetrics(ctx, p.lease)
		if err != nil {
			return wrong("cannot measure: %v", err)
		}
		// A place that runs has a process and memory.
		if got.Memory == 0 || got.Processes == 0 {
			return wrong("the metrics of a running place are %+v", got)
		}
		return nil
	})
}

func refusesMetrics(ctx context.Context, env *Env) error {
	return with(ctx, env, "nometrics", func(p *place) error {
		_, err := p.driver.CollectMetrics(ctx, p.lease)
		return refused("CollectMetrics", err)
	})
}
