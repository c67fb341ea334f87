package engine

import (
	"context"
	"errors"

	"github.com/litterbox-sandbox/litterbox/internal/caller"
	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/keeper"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// launch is a keeper that starts while its order is still being written.
type launch struct {
	p       *place
	started chan struct{} // closed when the rest is set
	err     error
	keys    wire.Keys
	keeper  keeper.Starting // nil when it could not be started

	progress func(keeper.Progress) // nil: nothing shows it
}

// launch begins to start the sandbox's keeper, and makes its keys. Either
// command or abandon must follow. It gets what it needs of the caller's
// environment: it outlives the client.
func (e *Engine) launch(ctx context.Context, p *place) *launch {
	l := &launch{p: p, started: make(chan struct{})}
	if show := e.Progress; show != nil {
		l.progress = func(one keeper.Progress) { show(one.What, one.Done, one.Total) }
	}
	go func() {
		defer close(l.started)
		made := make(chan error, 1)
		go func() {
			err := e.bringVM(ctx, p.record.Driver, p.dir)
			if err != nil {
				made <- err
				return
			}
			l.keeper, err = e.Keepers.Start(p.record.Driver, p.dir, caller.Lasting(callerOf(ctx).Env))
			made <- err
		}()
		var err error
		l.keys, err = p.keys()
		if failed := <-made; failed != nil {
			l.keeper = nil
			err = errors.Join(err, l.failure(failed))
		}
		l.err = err
	}()
	return l
}

func (l *launch) failure(err error) error {
	return fault.Wrap(fault.Unavailable, err, "cannot start the keeper of %s %q", l.p.kind(), l.p.record.Name)
}

// abandon ends a keeper that gets no order.
func (l *launch) abandon() {
	if <-l.started; l.keeper != nil {
		l.keeper.Abandon()
	}
}

// command sends the order, with the keys in it, and returns what the keeper
// reports: the lease that it has acquired or attached to.
func (l *launch) command(ctx context.Context, order keeper.Order) (*sandbox.Lease, error) {
	if <-l.started; l.err != nil {
		l.abandon()
		return nil, l.err
	}
	order.HostPrivate, order.GuestPublic = l.keys.HostPrivate, l.keys.GuestPublic
	order.Spec.HostKey, order.Spec.GuestKey = l.keys.HostPublic, l.keys.GuestPrivate
	report, err := l.keeper.Command(ctx, order, l.progress)
	switch {
	case ctx.Err() != nil && err != nil:
		return nil, fault.Wrap(fault.Canceled, ctx.Err(), "cannot start the keeper of %s %q", l.p.kind(), l.p.record.Name)
	case errors.Is(err, keeper.ErrSilent):
		return nil, fault.New(fault.Internal, "the keeper of %s %q ended without a report", l.p.kind(), l.p.record.Name).
			WithHint("cat %s", l.p.path("keeper.log"))
	case err != nil:
		return nil, l.failure(err)
	}
	if report.Busy {
		return nil, busy{&fault.Error{Kind: fault.Kind(report.Failure.Kind), Text: report.Failure.Text, Hint: report.Failure.Hint}}
	}
	if report.Failure != nil {
		return nil, &fault.Error{Kind: fault.Kind(report.Failure.Kind), Text: report.Failure.Text, Hint: report.Failure.Hint}
	}
	l.p.note(report.Notes...)
	return report.Lease, nil
}

// busy is the report of a keeper that got driver.ErrLeaseUnavailable. Its text says
// that already.
type busy struct{ error }

func (b busy) Unwrap() error { return b.error }

func (busy) Is(target error) bool { return target == driver.ErrLeaseUnavailable }
