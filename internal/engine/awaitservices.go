package engine

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/service"
	"github.com/litterbox-sandbox/litterbox/internal/store"
)

// NotReady is a service that did not become ready, with the end of its log.
type NotReady struct {
	ServiceStatus
	Log []string
}

// logEnd is how many lines of the log are shown for a service that failed.
const logEnd = 10

// AwaitServices waits until each service that is wanted and says when it is
// ready has become so or has failed, and gives those that are not ready. Each
// has its own timeout; patience bounds the whole, because one may wait for
// another.
func (e *Engine) AwaitServices(ctx context.Context, dir, name string, patience time.Duration) ([]NotReady, error) {
	p, err := e.find(ctx, dir, name)
	if err != nil {
		return nil, err
	}
	return e.awaitServices(ctx, p, patience)
}

func (e *Engine) awaitServices(ctx context.Context, p *place, patience time.Duration) ([]NotReady, error) {
	var record service.Record
	if _, err := e.side(p, store.ServicesFile, &record); err != nil {
		return nil, err
	}
	var awaited []string
	for _, spec := range record.Services {
		if spec.Ready.Told() && slices.Contains(record.Wanted, spec.Name) {
			awaited = append(awaited, spec.Name)
		}
	}
	if len(awaited) == 0 {
		return nil, nil
	}
	const label = "waiting for services: "
	for deadline := time.Now().Add(patience); ; {
		list, err := e.services(ctx, p, sandbox.Running)
		if err != nil {
			return nil, err
		}
		var pending []string
		var failed []ServiceStatus
		for _, s := range list {
			switch {
			case !slices.Contains(awaited, s.Name) || s.State == service.Running:
			case s.State.Settled() && s.State != service.Stopped, s.State == service.Waiting && inVain(record, list, s.Name):
				failed = append(failed, s)
			default: // one that is stopped has not been started yet
				pending = append(pending, s.Name)
				if !time.Now().Before(deadline) {
					failed = append(failed, s)
				}
			}
		}
		if len(pending) == 0 || !time.Now().Before(deadline) {
			e.report(label, 1, 1)
			return e.withLogs(ctx, p, failed)
		}
		e.report(label+strings.Join(pending, ", "), 0, 0)
		select {
		case <-ctx.Done():
			return nil, fault.Wrap(fault.Canceled, ctx.Err(), "cannot wait for the services of %q", p.record.Name)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// inVain reports whether a service waits for one that will not come: it failed, or
// it is not wanted.
func inVain(record service.Record, list []ServiceStatus, name string) bool {
	for _, need := range service.WithNeeds(record.Services, name) {
		if need == name {
			continue
		}
		if !slices.Contains(record.Wanted, need) {
			return true
		}
		if slices.ContainsFunc(list, func(s ServiceStatus) bool {
			return s.Name == need && (s.State == service.Backoff || s.State == service.Exited)
		}) {
			return true
		}
	}
	return false
}

// report passes progress on where it is wanted.
func (e *Engine) report(label string, done, total int) {
	if e.Progress != nil {
		e.Progress(label, done, total)
	}
}

// withLogs adds the end of its log to each service.
func (e *Engine) withLogs(ctx context.Context, p *place, failed []ServiceStatus) ([]NotReady, error) {
	var all []NotReady
	for _, s := range failed {
		page, err := e.serviceLogs(ctx, p, []string{s.Name}, LogRequest{From: -1, Tail: logEnd})
		if err != nil {
			return nil, err
		}
		one := NotReady{ServiceStatus: s}
		for _, line := range page.Lines {
			one.Log = append(one.Log, line.Text)
		}
		all = append(all, one)
	}
	return all, nil
}
