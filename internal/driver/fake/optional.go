package fake

import (
	"context"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// Pause implements driver.Driver.
func (d Driver) Pause(ctx context.Context, lease driver.Lease, _ string) error {
	if !d.Capabilities().Pause {
		return d.refuse(PretendsToPause)
	}
	if ctx.Err() != nil && !d.has(PausesLate) {
		return fault.Wrap("", driver.ErrPauseTimeout, "cannot pause the place of %q", lease.SandboxID)
	}
	return d.setPaused(lease, !d.has(PausesNothing))
}

// Resume implements driver.Driver.
func (d Driver) Resume(_ context.Context, lease driver.Lease) error {
	if !d.Capabilities().Pause {
		return d.refuse(PretendsToResume)
	}
	return d.setPaused(lease, false)
}

// limits lists the limits that the fake pretends to keep: it only remembers them.
func (d Driver) limits() []string {
	if d.options.Minimal || d.has(PretendsToLimit) {
		return nil
	}
	return []string{sandbox.LimitMemory, sandbox.LimitOpenFiles}
}

// Limit implements driver.Driver.
func (d Driver) Limit(_ context.Context, lease driver.Lease, limits sandbox.Limits) (driver.InForce, error) {
	if d.limits() == nil {
		return nil, d.refuse(PretendsToLimit)
	}
	d.machine.mu.Lock()
	defer d.machine.mu.Unlock()
	if _, err := d.find(lease); err != nil {
		return nil, err
	}
	return d.kept(limits), nil
}

func (d Driver) kept(limits sandbox.Limits) driver.InForce {
	kept := driver.InForce{}
	for _, name := range d.limits() {
		if limits.Get(name) > 0 && !d.has(KeepsNoLimits) {
			kept[name] = "memory of the test"
		}
	}
	return kept
}

// refuse answers undeclared operations, unless the defect is to pretend.
func (d Driver) refuse(pretence Defect) error {
	if d.has(pretence) {
		return nil
	}
	return driver.ErrUnsupported
}

func (d Driver) setPaused(lease driver.Lease, paused bool) error {
	d.machine.mu.Lock()
	defer d.machine.mu.Unlock()
	p, err := d.find(lease)
	if err != nil {
		return err
	}
	p.setPaused(paused)
	return nil
}

// CollectMetrics implements driver.Driver: a goroutine has no memory of its
// own to measure.
func (d Driver) CollectMetrics(_ context.Context, lease driver.Lease) (driver.Metrics, error) {
	if len(d.Traits().Metrics) == 0 {
		return driver.Metrics{}, d.refuse(PretendsToMeasure)
	}
	d.machine.mu.Lock()
	defer d.machine.mu.Unlock()
	p, err := d.find(lease)
	if err != nil || d.has(MeasuresNothing) {
		return driver.Metrics{}, err
	}
	m := driver.Unmeasured()
	m.Processes, m.Threads, m.Uptime = 1, 1, time.Since(p.started)
	return m, nil
}
