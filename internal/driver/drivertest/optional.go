package drivertest

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
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
			Name:   "ends while it is paused",
			Why:    "what was paused because it misbehaves can be stopped and deleted without running again",
			Needs:  func(c driver.Capabilities) bool { return c.Pause },
			Run:    endsWhilePaused,
			Absent: refusesResume,
		},
		{
			Name:   "keeps limits",
			Why:    "a caller that relies on a limit must know what keeps it, whichever process asks",
			Needs:  func(c driver.Capabilities) bool { return len(c.Limits) > 0 },
			Run:    keepsLimits,
			Absent: refusesLimits,
		},
		{
			Name:   "measures",
			Why:    "the keeper limits by what is measured; an unmeasured value is negative, not zero",
			Needs:  func(c driver.Capabilities) bool { return len(c.Metrics) > 0 },
			Run:    measures,
			Absent: refusesMetrics,
		},
	}
}

// stillTime is how long to watch a place in which nothing should happen: a
// correct driver cannot fail this on a slow machine.
const stillTime = 200 * time.Millisecond

func pausesAndResumes(ctx context.Context, env *Env) error {
	return with(ctx, env, "pause", func(p *place) error {
		link, err := p.connect(ctx, p.driver)
		if err != nil {
			return err
		}
		defer link.Close()
		if err := p.givesUp(ctx, link); err != nil {
			return err
		}
		for range 2 { // idempotent
			if err := p.driver.Pause(ctx, p.lease, "contract"); err != nil {
				return wrong("cannot pause: %v", err)
			}
		}
		if err := p.driver.Attach(ctx, p.lease); err != nil {
			return wrong("a paused place is not found: %v", err)
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

// givesUp pauses without any time to do it.
func (p *place) givesUp(ctx context.Context, link *wire.Link) error {
	over, cancel := context.WithDeadline(ctx, time.Unix(0, 0))
	defer cancel()
	if err := p.driver.Pause(over, p.lease, "contract"); !errors.Is(err, driver.ErrPauseTimeout) {
		return wrong("a pause without time answers %v, want ErrPauseTimeout", err)
	}
	brief, stop := context.WithTimeout(ctx, settleTime)
	defer stop()
	if _, err := execute(brief, link, command{argv: []string{"true"}}); err != nil {
		return wrong("after a pause that did not take the place stands still: %v", err)
	}
	return nil
}

func refusesPause(ctx context.Context, env *Env) error {
	return with(ctx, env, "nopause", func(p *place) error {
		return refused("Pause", p.driver.Pause(ctx, p.lease, "contract"))
	})
}

func endsWhilePaused(ctx context.Context, env *Env) error {
	p, err := acquire(ctx, env, env.Driver(), "paused-end")
	if err != nil {
		return err
	}
	if err := p.driver.Pause(ctx, p.lease, "contract"); err != nil {
		return errors.Join(wrong("cannot pause: %v", err), p.end(ctx))
	}
	brief, stop := context.WithTimeout(ctx, settleTime)
	defer stop()
	p.held = false
	if err := p.driver.Destroy(brief, p.lease, true); err != nil {
		return wrong("cannot destroy a paused place: %v", err)
	}
	if _, err := p.driver.Dial(ctx, p.lease); !errors.Is(err, driver.ErrMachineLost) {
		return wrong("after destroying a paused place Dial answers %v, want ErrMachineLost", err)
	}
	return nil
}

func refusesResume(ctx context.Context, env *Env) error {
	return with(ctx, env, "noresume", func(p *place) error {
		return refused("Resume", p.driver.Resume(ctx, p.lease))
	})
}

// generous returns limits that no check comes near, except for the one that a
// program inside can read.
func generous(names []string) sandbox.Limits {
	all := sandbox.Limits{CPUs: 64, Memory: 2 << 30, PIDs: 2000, Disk: 1 << 40, DiskIO: 1 << 33, OpenFiles: contractFiles, Time: time.Hour}
	var limits sandbox.Limits
	for _, name := range names {
		limits = limits.With(name, all)
	}
	return limits
}

const contractFiles = 789

func keepsLimits(ctx context.Context, env *Env) error {
	d := env.Driver()
	names := d.Capabilities().Limits
	p, err := plan(env, d, "limits")
	if err != nil {
		return err
	}
	p.spec.Limits = generous(names)
	if err := p.acquire(ctx); err != nil {
		return err
	}
	err = func() error {
		for i := range 3 { // saying it again changes nothing
			kept := p.lease.InForce
			if i > 0 {
				if kept, err = p.driver.Limit(ctx, p.lease, p.spec.Limits); err != nil {
					return wrong("cannot limit: %v", err)
				}
			}
			for _, name := range sandbox.LimitNames() {
				if declared := slices.Contains(names, name); declared != (kept[name] != "") {
					return wrong("%s is kept by %q, and declared: %t", name, kept[name], declared)
				}
			}
		}
		if !slices.Contains(names, sandbox.LimitOpenFiles) {
			return nil
		}
		got, err := p.prints(ctx, "sh", "-c", "ulimit -n")
		if err == nil && got != strconv.Itoa(contractFiles)+"\n" {
			err = wrong("a command may open %q files, want %d", got, contractFiles)
		}
		return err
	}()
	return errors.Join(err, p.end(ctx))
}

func refusesLimits(ctx context.Context, env *Env) error {
	return with(ctx, env, "nolimits", func(p *place) error {
		_, err := p.driver.Limit(ctx, p.lease, sandbox.Limits{Memory: 1 << 30})
		return refused("Limit", err)
	})
}

func refused(what string, err error) error {
	if !errors.Is(err, driver.ErrUnsupported) {
		return wrong("%s is not declared and answers %v, want ErrUnsupported", what, err)
	}
	return nil
}

func measures(ctx context.Context, env *Env) error {
	return with(ctx, env, "metrics", func(p *place) error {
		got, err := p.driver.CollectMetrics(ctx, p.lease)
		if err != nil {
			return wrong("cannot measure: %v", err)
		}
		values := map[string]int64{
			sandbox.MetricCPU: int64(got.CPU), sandbox.MetricMemory: got.Memory, sandbox.MetricProcesses: int64(got.Processes),
			sandbox.MetricThreads: int64(got.Threads), sandbox.MetricUptime: int64(got.Uptime),
		}
		for _, name := range p.driver.Traits().Metrics {
			if value, known := values[name]; !known || value < 0 {
				return wrong("%s is declared, and measured as %d", name, value)
			}
		}
		// A place that runs has a process and memory.
		if got.Memory == 0 || got.Processes == 0 || got.Threads == 0 {
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
