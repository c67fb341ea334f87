package engine

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/frozen"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/keeper"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/store"
)

// RestoreRequest asks for the files of a snapshot back.
type RestoreRequest struct {
	Dir, Name  string
	Snapshot   string // short name, label or id
	KeepBranch bool   // the branch stays, and the next commit says what went back
	// Stop ends what is at work; ConfirmStop asks. Without both, work refuses.
	Stop        bool
	ConfirmStop func([]Work) (bool, error)

	again string // the command of a hint, where it is not restore
}

// Reverted is a sandbox whose files were taken back.
type Reverted struct {
	Name      string `json:"name"`
	To        string `json:"to"`     // the snapshot's short name, or the iteration's number
	Commit    string `json:"commit"` // where the branch stands
	Before    string `json:"before"` // the snapshot of what was there: restore it to undo
	Exact     bool   `json:"exact"`  // ignored files, HOME and the agent's own git are back too
	Kept      bool   `json:"branch_kept"`
	Ended     []Work `json:"ended"`
	Iteration int    `json:"iteration"` // that the log has of this
}

// restoring is the plan of a restore. It is written before anything changes, and
// after a kill the next command repeats it from the beginning.
type restoring struct {
	Version    int    `json:"version"`
	Snapshot   string `json:"snapshot"` // id
	Iteration  int    `json:"iteration"`
	KeepBranch bool   `json:"keep_branch"`
	Tip        string `json:"tip"` // of the branch before
}

const restoringFile = "restoring.json"

// RestoreSnapshot restores all files of a sandbox, and its branch with them. The
// state before is kept as a snapshot of its own, and the branch's later commits
// stay reachable from it. The sandbox is stopped for it; its next command starts
// it.
func (e *Engine) RestoreSnapshot(ctx context.Context, request RestoreRequest) (result Reverted, err error) {
	p, err := e.find(ctx, request.Dir, request.Name)
	if err != nil {
		return Reverted{}, err
	}
	defer e.tell(p)
	to, err := p.findSnapshot(request.Snapshot)
	if _, notNumber := strconv.Atoi(request.Snapshot); fault.KindOf(err) == fault.NotFound && notNumber == nil {
		err = fault.New(fault.NotFound, "sandbox %q has no snapshot %q: a number alone is an iteration's", p.record.Name, request.Snapshot).
			WithHint("litterbox rewind %s %s", p.record.Name, request.Snapshot)
	}
	if err != nil {
		return Reverted{}, err
	}
	ctx, call, err := e.recordIn(ctx, p, "restore", map[string]any{"snapshot": to.Name(), "keep_branch": request.KeepBranch})
	if err != nil {
		return Reverted{}, err
	}
	defer func() { err = call.end(result.Commit, nil, err) }()
	return e.restore(ctx, p, to, request)
}

func (e *Engine) restore(ctx context.Context, p *place, to *sandbox.Snapshot, request RestoreRequest) (result Reverted, err error) {
	result = Reverted{Name: p.record.Name, To: to.Name(), Exact: true, Kept: request.KeepBranch}
	if p.far() { // only a running place can list uncommitted changes
		if err := e.settle(ctx, p); err != nil {
			return result, err
		}
	}
	if result.Ended, err = e.endForRestore(ctx, p, to, request); err != nil {
		return result, err
	}
	// From here on it is finished, by a later command if need be.
	ctx = context.WithoutCancel(ctx)
	take := e.snapshot
	if p.far() { // settled already, and that again would start it
		take = e.keep
	}
	before, err := take(ctx, p, sandbox.SnapshotBefore, "before restoring "+to.Name())
	if err != nil {
		return result, err
	}
	result.Before = before.Name()
	unlock, live, err := e.still(ctx, p)
	if err != nil {
		return result, err
	}
	defer unlock()
	if live {
		return result, fault.New(fault.Conflict, "cannot restore sandbox %q: it was just started", p.record.Name).
			WithHint("%s", cmp.Or(request.again, "litterbox restore --stop "+p.record.Name+" "+to.Name()))
	}
	tip := p.repo.GlanceTip(p.record.Branch)
	if tip == "" {
		if tip, err = p.repo.Tip(ctx, p.record.Branch); err != nil {
			return result, err
		}
	}
	fresh, err := p.store.Sandbox(p.record.ID)
	if err != nil {
		return result, err
	}
	*p.record = *fresh
	todo := restoring{Version: sandbox.RecordVersion, Snapshot: to.ID, Iteration: p.record.Iterations + 1, KeepBranch: request.KeepBranch, Tip: tip}
	if err := p.store.SaveRecord(p.record.ID, restoringFile, todo); err != nil {
		return result, err
	}
	if err := e.carryOutRestore(ctx, p, todo, tip); err != nil {
		return result, err
	}
	result.Commit, result.Iteration = p.record.Last, todo.Iteration
	if todo.KeepBranch {
		result.Commit = tip
	}
	return result, nil
}

// endForRestore stops a sandbox in which nothing is at work, or ends what is.
func (e *Engine) endForRestore(ctx context.Context, p *place, to *sandbox.Snapshot, request RestoreRequest) ([]Work, error) {
	state, _ := e.state(ctx, p.record)
	if state != sandbox.Running && state != sandbox.Paused {
		return []Work{}, nil
	}
	work, err := e.workBefore(ctx, p, request.Stop)
	if err != nil {
		return nil, err
	}
	held := holding(work)
	if err := mayEnd(p.record.Name, "restore", held, request.Stop, request.ConfirmStop); err != nil {
		if fault.KindOf(err) == fault.Conflict {
			err = fault.Wrap("", err, "it has to be stopped").WithHint("end it, or %s", cmp.Or(request.again, "litterbox restore --stop "+p.record.Name+" "+to.Name()))
		}
		return nil, err
	}
	if err := e.end(ctx, p, "stop", ""); err != nil {
		return nil, err
	}
	if len(held) > 0 {
		if err := e.quiesce(ctx, p); err != nil {
			return nil, err
		}
	}
	if err := e.settle(ctx, p); err != nil {
		return nil, err
	}
	if err := e.stop(ctx, p); err != nil {
		return nil, err
	}
	return listOf(held), e.update(ctx, p, func(r *sandbox.Sandbox) { r.State = sandbox.Stopped })
}

// listOf makes an empty list out of nil.
func listOf(work []Work) []Work {
	if work == nil {
		return []Work{}
	}
	return work
}

// carryOutRestore does every step so that it can be repeated. The caller holds the
// locks of the lease and of commits, and nothing runs. now is where the branch
// stands.
func (e *Engine) carryOutRestore(ctx context.Context, p *place, todo restoring, now string) error {
	defer e.busy("restoring " + p.record.Name)()
	to := &sandbox.Snapshot{}
	if found, err := p.store.Record(p.record.ID, snapshotRecord(todo.Snapshot), to); err != nil || !found {
		return errors.Join(err, fault.New(fault.NotFound, "cannot go on with the restore of sandbox %q: its snapshot is gone", p.record.Name))
	}
	lease, unlock, err := e.stopped(ctx, p)
	if err != nil {
		return err
	}
	defer unlock()
	if err := p.driver.Revert(ctx, lease, to.ID); err != nil {
		return err
	}
	state, err := e.processesBack(ctx, p, to)
	if err != nil {
		return err
	}
	iteration := &sandbox.Iteration{
		Number: todo.Iteration, Kind: "restore", Message: "restored " + describe(to), Commit: to.Commit, StartedAt: time.Now(),
	}
	if todo.KeepBranch {
		iteration.Commit = todo.Tip
	} else if err := e.moveBack(ctx, p, to, now); err != nil {
		return err
	}
	if err := copyRecord(p.snapshotFile(to.ID, store.ServicesFile), p.path(store.ServicesFile)); err != nil {
		return err
	}
	log, err := p.store.Iterations(p.record.ID)
	if err != nil {
		return err
	}
	if n := len(log); n == 0 || log[n-1].Number < iteration.Number {
		if err := p.store.AppendIteration(p.record.ID, iteration); err != nil {
			return err
		}
	}
	if err := e.update(ctx, p, func(r *sandbox.Sandbox) {
		r.State, r.Iterations = state, max(r.Iterations, iteration.Number)
		r.Layers, r.Modules = to.Sandbox.Layers, to.Sandbox.Modules
		if !todo.KeepBranch {
			r.Last, r.Milestone, r.InnerHead = to.Commit, to.Sandbox.Milestone, to.Sandbox.InnerHead
			r.Onto, r.OntoRef = to.Sandbox.Onto, to.Sandbox.OntoRef
		}
	}); err != nil {
		return err
	}
	e.emit(ctx, p, event(sandbox.EventReverted, 0, "snapshot", to.Name(), "commit", iteration.Commit))
	if err := os.Remove(p.path(restoringFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fault.Wrap(fault.Unavailable, err, "cannot finish the restore of sandbox %q", p.record.Name)
	}
	return nil
}

// processesBack takes over the lease of a place that came back with the memory of a
// snapshot: the next command attaches to it. It gives the sandbox's state.
func (e *Engine) processesBack(ctx context.Context, p *place, to *sandbox.Snapshot) (sandbox.State, error) {
	if to.Lease == nil {
		return sandbox.Stopped, nil
	}
	again := *to.Lease
	err := p.driver.Attach(ctx, p.driverLease(&again))
	if errors.Is(err, driver.ErrMachineLost) {
		return sandbox.Stopped, nil // only its files came back
	}
	if err != nil {
		return "", err
	}
	again.State, again.Health, again.PausedFor, again.UnreachableSince = sandbox.LeaseActive, "ok", "", time.Time{}
	return sandbox.Running, p.store.SaveLease(&again)
}

// moveBack moves the branch to where it was, and with it the record of the last
// commit. The commit that it leaves has a ref from the snapshot that was taken
// before.
func (e *Engine) moveBack(ctx context.Context, p *place, to *sandbox.Snapshot, tip string) error {
	if tip != to.Commit {
		err := p.repo.UpdateRefs(ctx, "cannot move the branch", p.record.Branch,
			"update "+git.HistoryRefs+p.record.ID+"/before-"+to.ID+"-"+tip[:12]+"\x00"+tip+"\x00\x00",
			"update "+git.Heads+p.record.Branch+"\x00"+to.Commit+"\x00"+tip+"\x00")
		if err != nil {
			return err
		}
	}
	// A staged one belongs to commits that the branch no longer has.
	if err := os.Remove(p.deltaFile() + ".next"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fault.Wrap(fault.Unavailable, err, "cannot restore what is known of the last commit")
	}
	return copyRecord(p.snapshotFile(to.ID, keeper.DeltaFile), p.deltaFile())
}

// describe names a snapshot for the log.
func describe(s *sandbox.Snapshot) string {
	if s.Label == "" {
		return s.Name()
	}
	return s.Name() + " (" + s.Label + ")"
}

// finishCopies finishes work on the files of a sandbox that a dead command began.
// It costs a look at two names where there is none.
func (e *Engine) finishCopies(ctx context.Context, p *place) error {
	pending := false
	if fileExists(p.path(frozen.File)) {
		r, err := frozen.Read(p.dir)
		if err != nil {
			return err
		}
		pending = r.Pending != nil && !r.Pending.Copied
	}
	if !pending && !fileExists(p.path(restoringFile)) {
		return nil
	}
	unlock, err := p.held(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	own := p.driver.Ownership(p.record.ID)
	box := frozen.Box{Dir: p.dir, Owner: frozen.Owner{UID: own.UpperUID, GID: own.UpperGID}, Whole: p.copied()}
	if _, err := box.Settled(); err != nil {
		return err
	}
	var todo restoring
	found, err := p.store.Record(p.record.ID, restoringFile, &todo)
	if err != nil || !found {
		return err // another command did it while this one waited
	}
	p.note("an interrupted restore of sandbox " + p.record.Name + " is finished")
	now := todo.Tip
	if !todo.KeepBranch { // another command may have committed to it since
		if now, err = p.repo.Tip(ctx, p.record.Branch); err != nil {
			return err
		}
	}
	return e.carryOutRestore(context.WithoutCancel(ctx), p, todo, now)
}

// leaseOf names a sandbox that never ran to its driver.
func leaseOf(p *place) driver.Lease {
	return driver.Lease{ID: p.record.ID, SandboxID: p.record.ID, StateDir: p.dir}
}
