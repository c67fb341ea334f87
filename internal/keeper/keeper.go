// Package keeper is the host process of one running sandbox, like a container
// runtime's shim: it owns the wire, relays every client's requests to the
// guest, keeps the lease's heartbeat, and ends when the guest ends.
//
// It makes no decisions: the engine decides what to run and what to commit. If
// a keeper dies, the guest lives on and the next command starts a new keeper,
// which attaches to the same guest. Start reading at [Run].
package keeper

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/forward"
	"github.com/litterbox-sandbox/litterbox/internal/process"
	"github.com/litterbox-sandbox/litterbox/internal/rest"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/store"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// Socket is the name of the keeper's socket in the sandbox's directory.
const Socket = "keeper.sock"

// OpStop is the keeper's own operation: end the sandbox in an orderly way.
// Grace is what its processes get between TERM and KILL.
const OpStop wire.Op = "keeper.stop"

// More of the keeper's own operations.
const (
	OpPause  wire.Op = "keeper.pause"  // Reason → Empty; a pause that fails to take hold is driver.ErrPauseTimeout
	OpResume wire.Op = "keeper.resume" // → Empty
	OpLimits wire.Op = "keeper.limits" // read LimitsFile again → Empty
	OpRenew  wire.Op = "keeper.renew"  // write the damaged lease again → Empty
	OpCheck  wire.Op = "keeper.check"  // check now whether a limit was reached → reachedList
	// OpSnapshot holds the place still and has the driver take a snapshot; Reason
	// is its label → driver.Snapshot.
	OpSnapshot wire.Op = "keeper.snapshot"
)

// heartbeat is how often the lease is renewed; it expires after three misses.
const heartbeat = sandbox.LeaseSilence / 3

// Order is what a keeper is told by its starter, as JSON on standard input.
type Order struct {
	StoreRoot  string `json:"store_root"`
	Repository string `json:"repository"` // its common git directory, for events
	Driver     string `json:"driver"`
	Spec       driver.Spec
	// Lease is set to attach to a guest that already runs.
	Lease       *sandbox.Lease `json:"lease"`
	HostPrivate []byte         `json:"host_private"`
	GuestPublic []byte         `json:"guest_public"`
	Strict      bool           `json:"strict"`
	// Guest says that the keeper was started with the guest's program open.
	Guest bool `json:"guest,omitempty"`
}

// Report is the keeper's answer, as JSON on standard output, after any number of
// reports that only have Progress.
type Report struct {
	Progress *Progress      `json:"progress,omitempty"`
	Lease    *sandbox.Lease `json:"lease"`
	Failure  *wire.Failure  `json:"failure"`
	Busy     bool           `json:"busy,omitempty"`  // the failure is driver.ErrLeaseUnavailable
	Notes    []string       `json:"notes,omitempty"` // what the user should know
}

// Progress is how far the start of a place has come with a long step.
type Progress struct {
	What  string `json:"what"`
	Done  int    `json:"done"`
	Total int    `json:"total"`
}

// progressEvery bounds how often progress is reported.
const progressEvery = 100 * time.Millisecond

// progressing reports progress, at that rate at most, and the end of each.
func progressing(report io.Writer) func(what string, done, total int) {
	var last time.Time
	return func(what string, done, total int) {
		if done < total && time.Since(last) < progressEvery {
			return
		}
		last = time.Now()
		// The client may be gone.
		_ = json.NewEncoder(report).Encode(Report{Progress: &Progress{what, done, total}})
	}
}

// keeper is one running keeper.
type keeper struct {
	base   context.Context // has the keeper's caller, and never ends
	order  Order
	driver driver.Driver
	store  *store.Store
	wire   *tether
	net    *network
	costs  *costs
	rest   *rest.Rest
	signer *signer // nil where the sandbox has no ssh-agent
	packs  packs
	relay  io.Closer // of the link to the place's machine; nil where none is lent
	unlock func()    // gives Lock back, before the process ends
	echo   echo

	worktree worktree

	ports   *forward.Listeners // nil without forwarded ports
	notes   []string           // for the report
	watched *wire.Link         // on which the services are watched, when there are some; guarded by mu

	idle       idle
	supervisor supervisor
	limiting   sync.Mutex // one puts limits in force at a time

	lending sync.Mutex
	lent    map[string][]byte // what lend has sent, by the path inside; guarded by lending

	mu    sync.Mutex // guards lease and rules
	lease *sandbox.Lease
	final bool        // the place's fate is recorded: nothing is written after it
	early chan linked // the wire, when the driver had a stream before the guest served
	rules Rules
	ended chan struct{} // closed when an ordered stop is complete
	once  sync.Once
}

// Run acquires or attaches as ordered, reports, and serves until the guest is
// gone. The report is written exactly once, after any progress. sleep is told what goes on; it is
// nil for a process that has other things to do.
func Run(ctx context.Context, drivers *driver.Set, order Order, report io.WriteCloser, sleep *rest.Rest) error {
	order.Spec.Progress = progressing(report)
	k, listener, err := open(ctx, drivers, order, sleep)
	if err != nil {
		failure := wire.Failure{Kind: string(fault.KindOf(err)), Text: err.Error(), Hint: fault.HintOf(err)}
		return errors.Join(err, json.NewEncoder(report).Encode(Report{Failure: &failure, Busy: errors.Is(err, driver.ErrLeaseUnavailable)}), report.Close())
	}
	// A client that is gone is no reason to end: the sandbox runs.
	_ = errors.Join(json.NewEncoder(report).Encode(Report{Lease: k.lease, Notes: k.notes}), report.Close())
	err = k.serve(ctx, listener)
	k.unlock()
	return errors.Join(err, k.unrelay())
}

func open(ctx context.Context, drivers *driver.Set, order Order, sleep *rest.Rest) (_ *keeper, _ net.Listener, err error) {
	d := drivers.Get(order.Driver)
	if d == nil {
		return nil, nil, fault.New(fault.Unsupported, "cannot run driver %q: this program does not have it", order.Driver)
	}
	records, err := store.Open(order.StoreRoot)
	if err != nil {
		return nil, nil, err
	}
	records = records.Durable(order.Strict)
	k := &keeper{base: context.WithoutCancel(ctx), rest: sleep, order: order, driver: d, store: records, wire: newTether(), ended: make(chan struct{})}
	if err := k.single(ctx); err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			k.unlock()
		}
	}()
	k.openRelay()
	defer func() {
		if err != nil {
			err = errors.Join(err, k.unrelay())
		}
	}()
	if err := k.openPorts(ctx, order.Lease != nil); err != nil {
		return nil, nil, err
	}
	if k.rules, err = ReadRules(order.Spec.StateDir); err != nil {
		return nil, nil, err
	}
	k.supervisor = newSupervisor(k)
	k.idle.beat = make(chan struct{}, 1)
	order.Spec.Limits = k.rules.Effective
	if k.lease = order.Lease; k.lease == nil {
		now := time.Now()
		if err := errors.Join(k.requireLimits(), k.requireRules()); err != nil {
			return nil, nil, err
		}
		order.Spec.Early = k.connectEarly(ctx)
		acquired, err := d.Acquire(ctx, order.Spec)
		if err != nil {
			k.ports.Close()
			return nil, nil, err
		}
		k.lease = &sandbox.Lease{ID: acquired.ID, SandboxID: order.Spec.SandboxID, Driver: order.Driver,
			Handle: acquired.Handle, AcquiredAt: now, Traits: acquired.Traits}
		k.limited(k.rules, acquired.InForce)
	}
	if order.Lease != nil {
		if err := k.limit(ctx, k.rules); err != nil {
			// It ran with the limits that could be kept; it goes on with them.
			fmt.Fprintln(os.Stderr, "keeper: the limits are not in force again:", err)
		}
	}
	listener, err := k.connect(ctx)
	if err != nil {
		k.ports.Close()
		if order.Lease == nil {
			err = errors.Join(err, d.Destroy(ctx, k.driverLease(), true))
		}
		return nil, nil, err
	}
	return k, listener, nil
}

// renew writes the lease with a fresh heartbeat.
func (k *keeper) renew(state sandbox.LeaseState) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.final {
		return nil
	}
	over := state == sandbox.LeaseReleased || state == sandbox.LeaseLost
	ending := k.lease.State == sandbox.LeaseReleased
	if state == sandbox.LeaseActive && k.lease.PausedFor != "" {
		state = sandbox.LeasePaused
	}
	unreachable := !k.lease.UnreachableSince.IsZero()
	if state == sandbox.LeaseActive && unreachable {
		state = sandbox.LeaseUnreachable
	}
	now := time.Now()
	self, err := process.Identify(os.Getpid())
	if err != nil {
		return fault.Wrap(fault.Internal, err, "cannot identify the keeper")
	}
	holder, err := json.Marshal(self)
	if err != nil {
		return err
	}
	k.lease.State = state
	k.lease.Heartbeat = now
	k.lease.ExpiresAt = now.Add(sandbox.LeaseSilence)
	k.lease.Beat = process.Now()
	k.lease.Holder = string(holder)
	k.lease.Health = "ok"
	if unreachable {
		k.lease.Health = string(sandbox.LeaseUnreachable)
	}
	if over {
		k.lease.Health, k.lease.PausedFor, k.lease.UnreachableSince = "gone", "", time.Time{}
	}
	err = k.store.SaveLease(k.lease)
	k.final = over && err == nil
	if ending {
		k.lease.State = sandbox.LeaseReleased // the guest's end is not a surprise
	}
	return err
}

func (k *keeper) serve(ctx context.Context, listener net.Listener) error {
	networkCtx, stopNetwork := context.WithCancel(ctx)
	defer stopNetwork()
	go k.hold(networkCtx)
	go k.carryNetwork(networkCtx)
	go k.net.refusals.run(networkCtx)
	if k.ports != nil {
		go k.forwardPorts(networkCtx)
		defer k.ports.Close()
	}
	k.watchIdle(networkCtx)
	go k.stopIdle(networkCtx)
	go k.supervisor.run(networkCtx)
	go func() {
		for {
			conn, err := listener.Accept()
			if errors.Is(err, net.ErrClosed) {
				return // below
			}
			if err != nil {
				time.Sleep(10 * time.Millisecond) // out of descriptors: some come free
				continue
			}
			go k.client(ctx, conn)
		}
	}()
	ticker := time.NewTicker(heartbeat)
	defer ticker.Stop()
	// Armed while there is something to write: a sandbox at rest wakes only for
	// its heartbeat, and every check is made then.
	saver := time.NewTimer(saveEvery)
	defer saver.Stop()
	saving := true
	var problem error
	for {
		select {
		case <-k.net.news:
			if !saving {
				saving = true
				saver.Reset(saveEvery)
			}
			continue
		case <-saver.C:
			problem = k.net.save() // likewise tried again
			if saving = problem != nil || k.net.busy(); saving {
				saver.Reset(saveEvery)
			}
			k.noteCompute(ctx, false)
			continue
		case <-ticker.C:
			// A full disk must not end a sandbox; the next beat tries again.
			problem = k.renew(sandbox.LeaseActive)
			k.noteCompute(ctx, false)
			signal(k.supervisor.beat)
			signal(k.idle.beat)
			continue
		case <-k.wire.gone:
			// In an ordered stop this comes first; its client still waits
			// for the answer.
			switch {
			case k.released():
				<-k.ended
			case ctx.Err() != nil: // as below
			default:
				problem = errors.Join(problem, k.lost(ctx), k.renew(sandbox.LeaseLost),
					k.emit(&sandbox.Event{Type: sandbox.EventLost, Data: driver.Because(ctx, k.driver, k.driverLease(), map[string]string{"lease": k.lease.ID})}))
			}
		case <-k.ended:
		case <-ctx.Done():
			// Asked to go without ending the sandbox: the next keeper attaches.
		}
		break
	}
	k.worktree.close()
	k.packs.close()
	k.net.awaitRenewals()
	problem = errors.Join(problem, k.net.save(), listener.Close(), k.wire.newest().Close())
	k.echo.finish()
	return problem
}

// emit records what happened to the sandbox.
func (k *keeper) emit(event *sandbox.Event) error {
	event.Sandbox, event.SandboxID, event.Repository = k.order.Spec.Name, k.order.Spec.SandboxID, k.order.Repository
	ctx, cancel := context.WithTimeout(k.base, emitPatience)
	defer cancel()
	return k.store.Emit(ctx, event)
}

// emitPatience is how long to wait for the event log.
const emitPatience = 10 * time.Second

func (k *keeper) released() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.lease.State == sandbox.LeaseReleased
}

func (k *keeper) stop(ctx context.Context, grace time.Duration) error {
	k.mu.Lock()
	k.lease.State = sandbox.LeaseReleased // so that the guest's end is not a surprise
	k.mu.Unlock()
	k.worktree.close()
	k.packs.close()
	k.net.awaitRenewals()
	// A paused place cannot end in order.
	if err := k.resume(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "keeper: cannot resume what shall end:", err)
	}
	k.noteCompute(ctx, true)
	orderly := false
	if stream, err := k.wire.open(); err == nil {
		orderly = wire.Shutdown(ctx, stream, grace) == nil
		stream.Close()
	}
	if err := k.driver.Destroy(ctx, k.driverLease(), !orderly); err != nil {
		return err
	}
	// The client may take the ports, delete the files or start it again as soon as
	// it has the answer. Nothing is written from here on.
	k.ports.Close()
	err := errors.Join(k.net.close(), k.renew(sandbox.LeaseReleased))
	k.unlock()
	return err
}

// lost clears away the remains of a guest that ended unasked.
func (k *keeper) lost(ctx context.Context) error {
	return k.driver.Destroy(context.WithoutCancel(ctx), k.driverLease(), true)
}
