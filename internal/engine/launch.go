package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/keeper"
	"github.com/litterbox-sandbox/litterbox/internal/process"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// launch is a keeper that starts while its order is still being written. It
// does nothing before it has the whole order, and without one it ends.
type launch struct {
	p       *place
	started chan struct{} // closed when the rest is set
	err     error
	keys    wire.Keys
	child   *os.Process // nil after an error
	order   *os.File    // its standard input
	report  *os.File    // its standard output
}

// launch begins to start the sandbox's keeper, and makes its keys. Either
// order or abandon must follow.
func (e *Engine) launch(p *place) *launch {
	l := &launch{p: p, started: make(chan struct{})}
	go func() {
		defer close(l.started)
		made := make(chan error, 1)
		go func() { made <- l.start(e) }()
		var err error
		l.keys, err = p.keys()
		l.err = errors.Join(err, <-made)
	}()
	return l
}

// start makes the process, in a session of its own, so that neither a closed
// terminal nor Ctrl-C reaches it.
func (l *launch) start(e *Engine) error {
	if err := process.CloseOnExec(3); err != nil {
		return l.failure(err)
	}
	program, err := e.Program()
	if err != nil {
		return l.failure(err)
	}
	defer program.Close()
	log, err := os.OpenFile(l.p.path("keeper.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return l.failure(err)
	}
	defer log.Close()
	input, order, err := os.Pipe()
	if err != nil {
		return l.failure(err)
	}
	defer input.Close()
	report, output, err := os.Pipe()
	if err != nil {
		return errors.Join(l.failure(err), order.Close())
	}
	defer output.Close()
	child, err := os.StartProcess(fmt.Sprintf("/proc/self/fd/%d", program.Fd()), []string{e.Child, "keeper"}, &os.ProcAttr{
		Dir: "/", Env: ThisProcess().Env, Files: []*os.File{input, output, log}, Sys: detached(),
	})
	if err != nil {
		return errors.Join(l.failure(err), order.Close(), report.Close())
	}
	l.child, l.order, l.report = child, order, report
	return nil
}

func (l *launch) failure(err error) error {
	return fault.Wrap(fault.Unavailable, err, "cannot start the keeper of sandbox %q", l.p.record.Name)
}

// abandon ends a keeper that gets no order.
func (l *launch) abandon() {
	<-l.started
	if l.child == nil {
		return
	}
	_ = errors.Join(l.order.Close(), l.report.Close()) // only pipes
	_, _ = l.child.Wait()                              // it ends at the end of its input
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
	data, err := json.Marshal(order)
	if err != nil {
		l.abandon()
		return nil, err
	}
	defer l.report.Close()
	go func() {
		_, _ = l.order.Write(data) // a keeper that died early shows in its report
		l.order.Close()
	}()
	stop := context.AfterFunc(ctx, func() { _ = l.child.Kill(); l.report.Close() })
	defer stop()
	var answer bytes.Buffer
	_, err = answer.ReadFrom(l.report)
	if ctx.Err() != nil {
		return nil, fault.Wrap(fault.Canceled, ctx.Err(), "cannot start the keeper of sandbox %q", l.p.record.Name)
	}
	if err != nil {
		return nil, l.failure(err)
	}
	var report keeper.Report
	if err := json.Unmarshal(answer.Bytes(), &report); err != nil {
		return nil, fault.New(fault.Internal, "the keeper of sandbox %q ended without a word", l.p.record.Name).
			WithHint("cat %s", l.p.path("keeper.log"))
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

// busy is what a keeper reported that got driver.ErrLeaseUnavailable. Its text
// says that already.
type busy struct{ error }

func (b busy) Unwrap() error { return b.error }

func (busy) Is(target error) bool { return target == driver.ErrLeaseUnavailable }
