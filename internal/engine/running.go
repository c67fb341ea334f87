package engine

import (
	"context"
	"errors"
	"net"
	"os"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/keeper"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/seal"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// running makes sure that the sandbox runs and has a keeper, and returns a stream
// for one request. Each repair becomes a note. A start has an entry in the audit
// log, unless it belongs to a call that has one.
func (e *Engine) running(ctx context.Context, p *place, degraded bool) (stream *net.UnixConn, err error) {
	stream, err = e.startWaiting(ctx, p, degraded)
	if err == nil {
		if err = e.lend(ctx, p); err != nil {
			err, stream = errors.Join(err, stream.Close()), nil
		}
	}
	return stream, err
}

// start is running without the parts that each client brings along.
func (e *Engine) start(ctx context.Context, p *place, degraded bool) (stream *net.UnixConn, err error) {
	if conn := p.running(ctx); conn != nil {
		return e.ready(ctx, p, conn)
	}
	defer e.busy("starting " + p.record.Name)()
	unlock, err := p.store.Lock(ctx, p.record.ID, "lease")
	if err != nil {
		return nil, err
	}
	defer unlock()
	lease, err := e.lease(ctx, p)
	if err != nil {
		return nil, err
	}
	if lease != nil && lease.Expired(e.moment(), e.now()) {
		// If its keeper lives, it has neither answered nor done its work.
		if _, err := e.endKeeper(p, lease); err != nil {
			return nil, err
		}
	}
	// Another command may have been faster during the wait.
	if conn := p.running(ctx); conn != nil {
		return e.ready(ctx, p, conn)
	}
	ctx, call, err := e.recordIn(ctx, p, "start", map[string]any{"allow_degraded": degraded})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err = call.end("", nil, err); err != nil && stream != nil {
			err, stream = errors.Join(err, stream.Close()), nil
		}
	}()
	if lease, err = e.lease(ctx, p); err != nil {
		return nil, err
	}
	recorded := lease
	if lease != nil {
		if lease, err = e.revive(ctx, p, lease); err != nil {
			return nil, err
		}
	}
	if conn := e.awaitKeeper(ctx, p); conn != nil {
		return e.ready(ctx, p, conn)
	}
	forgotten, err := p.forgetKeys()
	if err != nil {
		return nil, err
	}
	if forgotten && lease != nil {
		p.note("the keys of " + p.kind() + " " + p.record.Name + " were damaged: started it again with new ones" + p.withFiles())
		if err := p.driver.Destroy(ctx, p.driverLease(lease), true); err != nil {
			return nil, err
		}
		lease = nil
	}
	started, err := e.startKeeper(ctx, p, lease, degraded)
	if errors.Is(err, driver.ErrLeaseUnavailable) {
		var conn *net.UnixConn
		if conn, err = e.settleStart(ctx, p, recorded, lease != nil); conn != nil {
			return e.ready(ctx, p, conn)
		}
		if err == nil {
			started, err = e.startKeeper(ctx, p, lease, degraded)
		}
	}
	if err != nil {
		return nil, err
	}
	kind := sandbox.EventStarted
	if lease != nil {
		kind = sandbox.EventAttached
	}
	e.emit(ctx, p, event(kind, 0, "lease", started.ID))
	layers, modules := p.record.Layers, p.record.Modules
	if err := e.update(ctx, p, func(r *sandbox.Sandbox) {
		r.State, r.Problem, r.Layers, r.Modules = sandbox.Running, "", layers, modules
		if lease == nil { // its configuration was read for this start
			r.Strict, r.Snapshots = p.store.Strict(), automatic(p.config.Snapshots)
		}
	}); err != nil {
		return nil, err
	}
	if err := p.store.SaveOrigin(p.record); err != nil {
		return nil, err
	}
	conn, err := p.dial(ctx)
	if err != nil {
		return nil, fault.Wrap("", driver.ErrUnreachable, "cannot reach the keeper of %s %q: %v", p.kind(), p.record.Name, err).
			WithHint("litterbox stop %s", p.record.Name)
	}
	return conn, nil
}

// settleStart deals with a keeper that is there already, and with a running place
// that no lease records: the command that started it died on the way. Its keeper
// may still be coming up, which gives a connection. A keeper that does not answer
// is ended. Without a keeper no one can ever use an unrecorded place, so that is
// ended too.
func (e *Engine) settleStart(ctx context.Context, p *place, recorded *sandbox.Lease, attach bool) (*net.UnixConn, error) {
	for deadline := time.Now().Add(startPatience); time.Now().Before(deadline) && ctx.Err() == nil; {
		if conn, err := p.dial(ctx); err == nil {
			return conn, nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	if ended, err := e.endKeeper(p, recorded); ended || err != nil || attach {
		return nil, err
	}
	done, err := p.driver.Recover(ctx, driver.Lease{ID: p.record.ID, SandboxID: p.record.ID, StateDir: p.dir})
	p.note(done...)
	return nil, err
}

// startPatience is how long a keeper may take from its start to its socket.
const startPatience = 3 * time.Second

// ready returns conn, unless its other end cannot answer: a sandbox that a human
// has paused, or one whose keeper does not reach it.
func (e *Engine) ready(ctx context.Context, p *place, conn *net.UnixConn) (*net.UnixConn, error) {
	if err := e.unready(ctx, p); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// unready is why the sandbox cannot answer, as its keeper said when it was
// dialled last.
func (e *Engine) unready(ctx context.Context, p *place) error {
	switch {
	case p.paused:
		return keeper.ErrPaused(p.record.Name)
	case p.unreachable:
		return e.unreachable(ctx, p, nil)
	}
	return nil
}

// revive checks what became of a recorded lease. It returns the lease when its
// guest still runs and only a keeper is missing, and nil when the place must be
// started again.
func (e *Engine) revive(ctx context.Context, p *place, lease *sandbox.Lease) (*sandbox.Lease, error) {
	was := p.driverLease(lease)
	if lease.State == sandbox.LeaseReleased {
		p.note(p.noteStarted())
		return nil, nil
	}
	err := p.attach(ctx, was)
	if err == nil && lease.PausedFor == sandbox.PausedByUser {
		return nil, keeper.ErrPaused(p.record.Name)
	}
	if err == nil && lease.PausedFor != "" {
		if err := e.resumeAlone(ctx, p, lease); err != nil {
			return nil, err
		}
		if lease, err = p.store.Lease(p.record.ID); err != nil {
			return nil, err
		}
	}
	if err == nil {
		p.note("the keeper of " + p.kind() + " " + p.record.Name + " was gone: attached again, everything in it still runs")
		return lease, nil
	}
	if !errors.Is(err, driver.ErrMachineLost) {
		return nil, e.unreachable(ctx, p, err)
	}
	// Its keeper may be clearing the place away.
	unlock, err := e.alone(ctx, p, lease)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if lease, err = p.store.Lease(p.record.ID); err != nil {
		return nil, err
	}
	done, err := p.driver.Recover(ctx, was)
	if err != nil {
		return nil, err
	}
	p.note(done...)
	if p.driver.Attach(ctx, was) == nil {
		p.note(p.kind() + " " + p.record.Name + " was recovered: attached again, everything in it still runs")
		return lease, nil
	}
	if lease.State != sandbox.LeaseLost { // its keeper went with it, unable to say so
		e.emit(ctx, p, because(ctx, p, lease, event(sandbox.EventLost, 0, "lease", lease.ID)))
	}
	p.note(p.kind() + " " + p.record.Name + " had stopped running, and was started again" + p.withFiles())
	return nil, nil
}

func (p *place) driverLease(lease *sandbox.Lease) driver.Lease {
	return driver.Lease{ID: lease.ID, SandboxID: lease.SandboxID, StateDir: p.dir, Handle: lease.Handle}
}

// keys are the key pairs of the sandbox's wire, made at its first start.
func (p *place) keys() (wire.Keys, error) {
	path := p.path(keysFile)
	var pairs wire.Keys
	data, err := os.ReadFile(path)
	if err == nil {
		return pairs, seal.Decode(data, &pairs)
	}
	if !errors.Is(err, os.ErrNotExist) {
		return pairs, fault.Wrap(fault.Unavailable, err, "cannot read the keys of %s %q", p.kind(), p.record.Name)
	}
	if pairs, err = wire.NewKeys(); err != nil {
		return pairs, err
	}
	// In one step: half a file would be damaged keys.
	temp := p.path("." + keysFile)
	if data, err = seal.Encode(pairs); err == nil {
		err = os.WriteFile(temp, data, 0o600)
	}
	if err == nil {
		err = os.Rename(temp, path)
	}
	return pairs, err
}

const keysFile = "keys.json"

// startKeeper starts a keeper that attaches to lease, or acquires a new place
// when lease is nil, and waits for its report.
func (e *Engine) startKeeper(ctx context.Context, p *place, lease *sandbox.Lease, degraded bool) (*sandbox.Lease, error) {
	l := e.launch(ctx, p)
	spec, err := e.spec(ctx, p, lease == nil)
	if err != nil {
		l.abandon()
		return nil, err
	}
	spec.Degraded = degraded || p.record.Isolation == sandbox.IsolationDegraded // accepted when it was created
	started, err := l.command(ctx, e.order(p, spec, lease))
	if err == nil {
		e.standsForUser(ctx, p, started)
	}
	return started, err
}

// order is the complete order for a keeper.
func (e *Engine) order(p *place, spec driver.Spec, lease *sandbox.Lease) keeper.Order {
	return keeper.Order{
		StoreRoot: e.Store.Root, Repository: p.record.GitDir, Driver: p.record.Driver, Spec: spec, Lease: lease, Strict: p.store.Strict(),
	}
}

// stop ends the sandbox's processes in order. It is not an error when nothing runs.
func (e *Engine) stop(ctx context.Context, p *place) error {
	defer e.busy("stopping " + p.record.Name)()
	unlock, err := p.store.Lock(ctx, p.record.ID, "lease")
	if err != nil {
		return err
	}
	defer unlock()
	lease, err := e.lease(ctx, p)
	if err != nil {
		return err
	}
	if lease == nil {
		if fileExists(p.path("lease.json")) { // damaged: find out who its guest is
			done, err := p.driver.Recover(ctx, driver.Lease{ID: p.record.ID, SandboxID: p.record.ID, StateDir: p.dir})
			if p.note(done...); err != nil {
				return err
			}
		}
		// It never said who its guest is; anything that start left is removed.
		unlock, err := e.alone(ctx, p, nil)
		if err != nil {
			return err
		}
		defer unlock()
		// A keeper that was ended between its guest's first word and the lease
		// has left a guest that waits for another one.
		done, err := p.driver.Recover(ctx, driver.Lease{ID: p.record.ID, SandboxID: p.record.ID, StateDir: p.dir})
		if p.note(done...); err != nil {
			return err
		}
		return p.driver.Destroy(ctx, driver.Lease{ID: p.record.ID, SandboxID: p.record.ID, StateDir: p.dir}, true)
	}
	was := lease.State
	if err := e.release(ctx, p, lease); err != nil {
		return err
	}
	if was != sandbox.LeaseReleased {
		e.emit(ctx, p, event(sandbox.EventStopped, 0))
	}
	return nil
}

// release has the keeper end the place, or the driver where no keeper answers.
func (e *Engine) release(ctx context.Context, p *place, lease *sandbox.Lease) error {
	if conn, err := p.dial(ctx); err == nil {
		defer conn.Close()
		request := wire.Request{Version: wire.Version, Op: keeper.OpStop, Grace: shutdownGrace}
		if err := wire.WriteJSON(conn, wire.KindRequest, request); err == nil {
			_ = conn.SetReadDeadline(time.Now().Add(shutdownGrace + 30*time.Second))
			if kind, _, err := wire.NewReader(conn).Next(); err == nil && kind == wire.KindResult {
				return nil
			}
		}
	}
	unlock, err := e.alone(ctx, p, lease)
	if err != nil {
		return err
	}
	defer unlock()
	if err := p.driver.Destroy(ctx, p.driverLease(lease), true); err != nil {
		return err
	}
	lease.State, lease.PausedFor = sandbox.LeaseReleased, ""
	return p.store.SaveLease(lease)
}

// update changes the sandbox's record under its lock, on top of other commands'
// changes since.
func (e *Engine) update(ctx context.Context, p *place, change func(*sandbox.Sandbox)) error {
	unlock, err := p.store.Lock(ctx, p.record.ID, "record")
	if err != nil {
		return err
	}
	defer unlock()
	fresh, err := p.store.Sandbox(p.record.ID)
	if err != nil {
		return err
	}
	change(fresh)
	if err := p.store.Save(fresh); err != nil {
		return err
	}
	*p.record = *fresh
	return nil
}
