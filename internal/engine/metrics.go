package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/egress"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/keeper"
	"github.com/litterbox-sandbox/litterbox/internal/process"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/seal"
)

// Sample is what one sandbox uses and has done, at one moment.
type Sample struct {
	Info
	Resources *Metrics        `json:"resources"`         // nil when nothing runs
	Machine   *Machinery      `json:"machine,omitempty"` // of its own or shared; nil where no hypervisor has one
	Traffic   NetworkCounts   `json:"traffic"`
	Commands  CommandCounts   `json:"commands"`
	Services  []ServiceStatus `json:"services"`
	Heartbeat *time.Time      `json:"heartbeat"`  // of the lease; nil when nothing runs
	Disk      *int64          `json:"disk_bytes"` // nil when it was not asked for
}

// NetworkCounts add up a sandbox's network attempts.
type NetworkCounts struct {
	Allowed int64 `json:"allowed"` // attempts
	Refused int64 `json:"refused"`
	In      int64 `json:"bytes_in"` // towards the sandbox
	Out     int64 `json:"bytes_out"`
}

// CommandCounts add up the runs of a sandbox that are over, and how long they
// took.
type CommandCounts struct {
	Completed int64         `json:"completed"`
	Failed    int64         `json:"failed"` // could not be carried out
	Total     time.Duration `json:"duration_ns"`
	// Within counts the runs that took at most the bound at the same index of
	// Latencies.
	Within []int64 `json:"within"`
}

// Latencies are the bounds of CommandCounts.Within.
func Latencies() []time.Duration {
	return []time.Duration{
		10 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 500 * time.Millisecond,
		time.Second, 5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, time.Hour,
	}
}

// Samples measures the sandboxes of the repository at dir, or of all. With disk
// it also counts what they take there, which reads their directories.
func (e *Engine) Samples(ctx context.Context, dir string, all, disk bool) ([]Sample, error) {
	infos, err := e.List(ctx, dir, all)
	if err != nil {
		return nil, err
	}
	measured := make([]*Sample, len(infos))
	var looks errgroup.Group
	looks.SetLimit(looksAtOnce)
	for i, info := range infos {
		looks.Go(func() (err error) {
			measured[i], err = e.measured(ctx, info, disk)
			return err
		})
	}
	err = looks.Wait()
	samples := make([]Sample, 0, len(infos))
	for _, one := range measured {
		if one != nil {
			samples = append(samples, *one)
		}
	}
	return samples, err
}

// measured is the sample of a listed sandbox; nil where there is none to give.
func (e *Engine) measured(ctx context.Context, info Info, disk bool) (*Sample, error) {
	if info.State == sandbox.Failed {
		if _, err := e.sandbox(ctx, info.ID); errors.Is(err, seal.ErrDamaged) || fault.KindOf(err) == fault.Unsupported {
			return nil, nil // list says how to mend it
		}
	}
	one, err := e.sample(ctx, info, disk)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, nil // deleted since it was listed
	case fault.KindOf(err) == fault.Unsupported:
		return nil, nil // a newer program wrote part of it: its own commands say so
	case err != nil:
		return nil, err
	}
	return &one, nil
}

func (e *Engine) sample(ctx context.Context, info Info, disk bool) (Sample, error) {
	sample := Sample{Info: info, Services: []ServiceStatus{}}
	record, err := e.sandbox(ctx, info.ID)
	if err != nil {
		return sample, err
	}
	p := e.orphan(ctx, record) // no repository is needed
	if sample.Commands, err = e.commands(ctx, info.ID); err != nil {
		return sample, err
	}
	seen, err := egress.ReadObservations(p.path(keeper.SeenFile))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return sample, err
	}
	sample.Traffic = countNetwork(seen)
	if disk {
		bytes := inodes{}.size(filepath.Clean(p.dir))
		sample.Disk = &bytes
	}
	if info.State != sandbox.Running && info.State != sandbox.Paused {
		return sample, nil
	}
	if p.driver == nil {
		return sample, nil
	}
	lease, err := e.lease(ctx, p)
	if err != nil || lease == nil {
		return sample, err
	}
	heartbeat := lastBeat(lease)
	sample.Heartbeat = &heartbeat
	used, err := p.driver.CollectMetrics(ctx, p.driverLease(lease))
	switch {
	case err == nil:
		sample.Resources = &used
	case !errors.Is(err, driver.ErrUnsupported) && !errors.Is(err, driver.ErrMachineLost) && !errors.Is(err, driver.ErrUnreachable):
		return sample, err
	}
	sample.Machine = machinery(ctx, p, lease)
	if info.State == sandbox.Running {
		services, err := e.services(ctx, p, sandbox.Running)
		if err != nil && fault.KindOf(err) != fault.Unsupported { // status says how to mend it
			return sample, err
		}
		sample.Services = append(sample.Services, services...)
	}
	return sample, nil
}

// lastBeat is the time of the lease's last heartbeat by the present clock, which
// may have jumped since.
func lastBeat(lease *sandbox.Lease) time.Time {
	if age, known := lease.Beat.Age(process.Now()); known {
		return time.Now().Add(-age)
	}
	return lease.Heartbeat
}

func (e *Engine) commands(ctx context.Context, id string) (CommandCounts, error) {
	counts := CommandCounts{Within: make([]int64, len(Latencies()))}
	cycles, err := e.Store.Cycles(ctx, id, 0)
	if err != nil {
		return counts, err
	}
	for _, cycle := range cycles {
		switch cycle.State {
		case sandbox.Completed:
			counts.Completed++
		case sandbox.CycleFailed:
			counts.Failed++
			continue
		default:
			continue
		}
		took := max(0, cycle.CompletedAt.Sub(cycle.StartedAt)) // a recovered one ended by another clock
		counts.Total += took
		for i, bound := range Latencies() {
			if took <= bound {
				counts.Within[i]++
			}
		}
	}
	return counts, nil
}

func countNetwork(seen []egress.Observation) NetworkCounts {
	var counts NetworkCounts
	for _, one := range seen {
		if one.Verdict == egress.Deny {
			counts.Refused += one.Count
		} else {
			counts.Allowed += one.Count
		}
		counts.In += one.BytesIn
		counts.Out += one.BytesOut
	}
	return counts
}
