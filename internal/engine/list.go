package engine

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/litterbox-sandbox/litterbox/internal/config"
	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/keeper"
	"github.com/litterbox-sandbox/litterbox/internal/process"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/seal"
	"github.com/litterbox-sandbox/litterbox/internal/store"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// info is what listings show of a sandbox. The lease is nil where none counts.
func (e *Engine) info(record *sandbox.Sandbox, head string, state sandbox.State, lease *sandbox.Lease) Info {
	network := "unknown" // a policy that cannot be read; the keeper refuses it too
	if policy, err := readPolicy(e.Store.SandboxDir(record.ID)); err == nil {
		network = summary(policy)
	}
	if state == sandbox.Paused && lease.PausedFor.Passes() && !lease.Expired(e.moment(), e.now()) {
		state = sandbox.Running // commands wait for its end
	}
	info := Info{
		Name: record.Name, Branch: record.Branch, Base: record.From(), Head: head, State: state, Driver: record.Driver,
		Isolation: record.Isolation, Network: network, Repository: record.Repository, CreatedAt: record.CreatedAt,
		BaseRef: baseRef(record), ID: record.ID, Iterations: record.Iterations, Agent: e.agentOf(record), Worker: record.Worker, Problem: record.Problem, Limits: []sandbox.Limit{},
		Sessions: []Session{},
	}
	// Limits that cannot be read keep it from starting, and its keeper says so.
	if rules, err := keeper.ReadRules(e.Store.SandboxDir(record.ID)); err == nil {
		info.Limits = limitList(rules, lease)
		if state == sandbox.Unreachable && lease != nil {
			info.UnreachableSince = silentSince(lease)
		}
	}
	return info
}

// List enumerates the sandboxes of the repository at dir, or of all repositories.
// Unreadable records are reported as errors separately.
func (e *Engine) List(ctx context.Context, dir string, all bool) ([]Info, error) {
	records, unreadable, err := e.sandboxes(ctx)
	if err != nil {
		return nil, err
	}
	return e.listed(ctx, dir, all, records, unreadable)
}

// ListHere enumerates the sandboxes of the repository at dir, and those that have
// lost theirs and that Reattach would give to it.
func (e *Engine) ListHere(ctx context.Context, dir string) (infos, strays []Info, err error) {
	records, unreadable, err := e.sandboxes(ctx)
	if err != nil {
		return nil, nil, err
	}
	if infos, err = e.listed(ctx, dir, false, records, unreadable); err != nil {
		return nil, nil, err
	}
	strays, err = e.strays(ctx, dir, records)
	return infos, strays, err
}

// listed is List of given records.
func (e *Engine) listed(ctx context.Context, dir string, all bool, records []*sandbox.Sandbox, unreadable []store.Unreadable) ([]Info, error) {
	wanted := ""
	if !all {
		var err error
		if wanted, err = gitDirOf(ctx, dir); err != nil {
			return nil, err
		}
	}
	costs, err := e.costs()
	if err != nil {
		return nil, err
	}
	tips := map[string]map[string]string{} // by repository, then branch
	listed := []*sandbox.Sandbox{}
	for _, record := range records {
		if !all && record.GitDir != wanted {
			continue
		}
		if record.Temporary && !process.Alive(record.Holder) {
			continue // what a killed build or installation left: doctor names it, and the next one removes it
		}
		if _, known := tips[record.GitDir]; !known {
			// A repository that is gone has no tips, and its sandboxes say so.
			found, err := git.At(ctx, record.GitDir, "", record.Base).Tips(ctx)
			if err != nil && !orphaned(record) {
				return nil, err
			}
			tips[record.GitDir] = found
		}
		e.moveListedWorktree(ctx, record)
		listed = append(listed, record)
	}
	infos := make([]Info, len(listed))
	var looks errgroup.Group
	looks.SetLimit(looksAtOnce)
	for i, record := range listed {
		looks.Go(func() error {
			infos[i] = e.looked(ctx, record, tips[record.GitDir][record.Branch])
			infos[i].Cost = costs[record.ID]
			return nil
		})
	}
	_ = looks.Wait() // none fails
	behind := distances{}
	for i, record := range listed {
		infos[i].Behind = behind.of(ctx, record)
	}
	for _, one := range unreadable {
		name := nameOf(one.ID)
		if id, err := e.Store.Claimed(wanted, name); !all && (err != nil || id != one.ID) {
			continue
		}
		problem := one.Err.Error()
		if hint := fault.HintOf(one.Err); hint != "" {
			problem += "; " + hint
		}
		infos = append(infos, Info{ID: one.ID, Name: name, State: sandbox.Failed, Network: "unknown", Problem: problem, Limits: []sandbox.Limit{}, Sessions: []Session{}})
	}
	return infos, nil
}

// looksAtOnce is how many sandboxes a listing looks at at once. A look waits for the
// answer of a place, and for that of a machine which is gone many seconds.
const looksAtOnce = 8

// looked is what a listing shows of a sandbox whose branch is at tip.
func (e *Engine) looked(ctx context.Context, record *sandbox.Sandbox, tip string) Info {
	state, lease, problem := e.stateAndLease(ctx, record)
	if problem == "" && state != sandbox.Creating && tip == "" {
		state, problem = sandbox.Orphaned, "its branch is gone from the repository; litterbox reattach recreates it"
	}
	info := e.info(record, tip, state, lease)
	info.Sessions = e.sessions(ctx, record.ID, state)
	if problem != "" {
		info.Problem = problem
	}
	return info
}

func orphaned(record *sandbox.Sandbox) bool {
	_, err := os.Stat(record.GitDir)
	return err != nil
}

// state is the present state of a sandbox, seen without touching it.
func (e *Engine) state(ctx context.Context, record *sandbox.Sandbox) (sandbox.State, string) {
	state, _, problem := e.stateAndLease(ctx, record)
	return state, problem
}

// stateAndLease is state, with the lease of a sandbox that runs, is paused or does
// not answer.
func (e *Engine) stateAndLease(ctx context.Context, record *sandbox.Sandbox) (sandbox.State, *sandbox.Lease, string) {
	if orphaned(record) {
		return sandbox.Orphaned, nil, "its repository is no longer at " + record.GitDir + "; run litterbox reattach in its new location or in a new clone"
	}
	switch record.State {
	case sandbox.Creating, sandbox.Deleting:
		if !process.Alive(record.Holder) {
			return sandbox.Failed, nil, "its " + string(record.State) + " was interrupted; litterbox delete " + record.Name + " clears it away"
		}
		return record.State, nil, ""
	}
	d := e.Drivers.Get(record.Driver)
	p := e.place(record, nil, d)
	lease, err := e.lease(ctx, p)
	if d == nil || err != nil || lease == nil || lease.State == sandbox.LeaseReleased {
		return sandbox.Stopped, nil, ""
	}
	err = d.Attach(ctx, p.driverLease(lease))
	if errors.Is(err, driver.ErrMachineLost) {
		return sandbox.Stopped, nil, ""
	}
	cut := lease.State == sandbox.LeaseUnreachable && !lease.Expired(e.moment(), e.now())
	if err != nil || cut {
		return sandbox.Unreachable, lease, "it has not answered since " + silentSince(lease).Local().Format(time.DateTime) + " and is probably still running"
	}
	if lease.PausedFor != "" {
		return sandbox.Paused, lease, ""
	}
	return sandbox.Running, lease, ""
}

// Exists reports whether the repository at dir has a sandbox of that name, in any
// state. It is called before every `run`, so it reads one record.
func (e *Engine) Exists(ctx context.Context, dir, name string) (bool, error) {
	slug, err := sandbox.Slug(name)
	if err != nil {
		return false, err
	}
	gitDir, err := gitDirOf(ctx, dir)
	if err != nil {
		return false, err
	}
	id, err := e.Store.Claimed(gitDir, slug)
	if err != nil || id == "" {
		return false, err
	}
	_, err = e.Store.Sandbox(id)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil // its creation or deletion is under way, or died early
	}
	if errors.Is(err, seal.ErrDamaged) {
		return true, nil // the next command in it makes that again
	}
	return err == nil, err
}

// Status tells everything about one sandbox.
func (e *Engine) Status(ctx context.Context, dir, name string) (Status, error) {
	p, err := e.find(ctx, dir, name)
	if err != nil {
		return Status{}, err
	}
	head, err := p.repo.Tip(ctx, p.record.Branch)
	if err != nil && fault.KindOf(err) != fault.NotFound {
		return Status{}, err
	}
	state, lease, problem := e.stateAndLease(ctx, p.record)
	status := Status{Info: e.info(p.record, head, state, lease), StateDir: p.dir, Background: []wire.Process{}, Cycles: []sandbox.Cycle{}, Mounts: []Mount{}, Services: []ServiceStatus{}, Ports: []Port{}, Reached: []Reached{},
		BaseImage: p.record.Image}
	status.Problem, status.Sessions = problem, e.sessions(ctx, p.record.ID, state)
	status.Behind = distances{}.of(ctx, p.record)
	costs, err := e.costs()
	if err != nil {
		return status, err
	}
	status.Cost = costs[p.record.ID]
	if head == "" {
		status.Problem = "its branch " + p.record.Branch + " is gone; litterbox reattach recreates it"
	}
	switch services, err := e.services(ctx, p, state); {
	case fault.KindOf(err) == fault.Unsupported:
		status.Problem = withHint(err)
	case err != nil:
		return status, err
	default:
		status.Services = services
	}
	if status.Ports, err = e.ports(p, state == sandbox.Running); err != nil {
		return status, err
	}
	// An unreadable policy shows as an unknown network.
	if policy, err := e.policy(p); err == nil {
		status.Revision = policy.Revision
	}
	cycles, err := p.store.Cycles(ctx, p.record.ID, 16)
	if err != nil {
		return status, err
	}
	for i, cycle := range cycles {
		if !cycle.State.Terminal() || i == len(cycles)-1 {
			status.Cycles = append(status.Cycles, cycle)
		}
	}
	if err := e.configure(ctx, p); err != nil {
		return status, err
	}
	status.Mounts = append(status.Mounts, e.visible(p, callerOf(ctx))...)
	repoConfig, err := config.Load(p.record.Repository)
	if err == nil {
		status.Trusted, err = config.Trust{File: e.Store.TrustFile()}.Trusted(p.record.GitDir, repoConfig.Hash)
	}
	if err != nil {
		return status, err
	}
	if status.Lease = lease; lease == nil {
		return status, nil // nothing runs
	}
	status.Lease.Heartbeat = lastBeat(status.Lease)
	if used, err := p.driver.CollectMetrics(ctx, p.driverLease(status.Lease)); err == nil {
		status.Resources = &used
	} else if !errors.Is(err, driver.ErrUnsupported) && !errors.Is(err, driver.ErrMachineLost) && !errors.Is(err, driver.ErrUnreachable) {
		return status, err
	}
	status.Machine = machinery(ctx, p, status.Lease)
	status.Reached = append(status.Reached, p.reached(ctx)...)
	if state == sandbox.Paused || state == sandbox.Unreachable {
		return status, nil // nothing inside could answer
	}
	if stream, err := p.dial(ctx); err == nil {
		defer stream.Close()
		background, err := wire.Processes(ctx, stream)
		if fault.KindOf(err) == fault.Unsupported {
			status.Problem = withHint(err)
			return status, nil
		}
		if err != nil {
			return status, err
		}
		status.Background = append(status.Background, background...)
		if signatures, err := p.signatures(ctx); err == nil {
			status.Signatures = signatures.Waiting
		}
	} else {
		status.Problem = "its keeper is gone; the next command attaches again"
	}
	return status, nil
}

// withHint words an error that is part of an answer.
func withHint(err error) string { return err.Error() + "; try: " + fault.HintOf(err) }

// Log lists the iterations of a sandbox, oldest first.
func (e *Engine) Log(ctx context.Context, dir, name string) ([]sandbox.Iteration, error) {
	p, err := e.find(ctx, dir, name)
	if err != nil {
		return nil, err
	}
	return p.store.Iterations(p.record.ID)
}

// Stop ends a sandbox's processes; its files, branch and home stay. The result says
// what it ended.
func (e *Engine) Stop(ctx context.Context, request StopRequest) (result StopResult, err error) {
	p, err := e.find(ctx, request.Dir, request.Name)
	orphan := false
	if fault.KindOf(err) == fault.NotFound {
		if found := e.findOrphan(ctx, request.Name); found != nil {
			p, err, orphan = found, nil, true
		}
	}
	if err != nil {
		return result, err
	}
	defer e.tell(p)
	result.Name = p.record.Name
	ctx, call, err := e.recordIn(ctx, p, "stop", nil)
	if err != nil {
		return result, err
	}
	defer func() { err = call.end("", nil, err) }()
	if orphan {
		return result, e.stop(ctx, p) // nothing can be committed; its files stay for reattach
	}
	if result.Ended, err = e.readyToStop(ctx, p, request); err != nil {
		return result, err
	}
	// While it runs the agent's own history can be asked for; afterwards it cannot.
	// The processes end even where something cannot be committed: a sandbox must
	// not keep them running by what it does to its files.
	if err := e.settle(ctx, p); err != nil {
		if ctx.Err() != nil {
			return result, err
		}
		p.note("uncommitted changes in the sandbox could not be committed and stay there: " + err.Error())
	}
	if err := e.stop(ctx, p); err != nil {
		return result, err
	}
	e.endInstallation(ctx, p)
	return result, e.update(ctx, p, func(r *sandbox.Sandbox) { r.State = sandbox.Stopped })
}

// StartResult is what Start did.
type StartResult struct {
	Already bool // it ran when it was asked
	Notes   []string
}

// Start starts a stopped sandbox; it is not an error when it runs already.
func (e *Engine) Start(ctx context.Context, dir, name string, allowDegraded bool) (result StartResult, err error) {
	p, err := e.find(ctx, dir, name)
	if err != nil {
		return StartResult{}, err
	}
	ctx, call, err := e.recordIn(ctx, p, "start", map[string]any{"allow_degraded": allowDegraded})
	if err != nil {
		return StartResult{}, err
	}
	defer func() { err = call.end("", nil, err) }()
	stream, err := e.running(ctx, p, allowDegraded)
	if err != nil {
		return StartResult{}, err
	}
	own := p.noteStarted() // what was asked for
	result = StartResult{Already: p.answered, Notes: slices.DeleteFunc(p.notes, func(note string) bool { return note == own })}
	return result, stream.Close()
}

// noteStarted tells of a start that a command needed.
func (p *place) noteStarted() string { return "started " + p.kind() + " " + p.record.Name }
