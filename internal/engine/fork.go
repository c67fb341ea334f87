package engine

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/keeper"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/store"
)

// ForkRequest asks for sandboxes that begin with everything another sandbox holds.
type ForkRequest struct {
	Dir, Name string
	New       string // of the fork; with Count the names are New-1 and so on
	At        string // an iteration's number or a snapshot; empty is now
	Count     int    // 0 is one, called New
}

// maxForks bounds how many sandboxes one call makes.
const maxForks = 1000

// Forked is the result of a fork.
type Forked struct {
	Forks []Info   `json:"forks"`
	From  string   `json:"from"` // the snapshot that they begin with
	Notes []string `json:"-"`
}

// Fork makes sandboxes with everything that another sandbox holds, each on a branch
// of its own from the same commit. The first goes on running. The new ones do not
// run: the first command in each starts it.
func (e *Engine) Fork(ctx context.Context, request ForkRequest) (forked Forked, err error) {
	names, err := forkNames(request)
	if err != nil {
		return Forked{}, err
	}
	p, err := e.find(ctx, request.Dir, request.Name)
	if err != nil {
		return Forked{}, err
	}
	defer e.tell(p)
	if err := p.forks(); err != nil {
		return Forked{}, err
	}
	ctx, call, err := e.recordIn(ctx, p, "fork", map[string]any{"new": request.New, "at": request.At, "count": request.Count})
	if err != nil {
		return Forked{}, err
	}
	defer func() { err = call.end("", nil, err) }()
	begin, rewind, own, err := e.forkPoint(ctx, p, request.At)
	if err != nil {
		return Forked{}, err
	}
	forked.From = begin.Name()
	if own { // made for this, and the forks use its layers directly
		defer func() { err = errors.Join(err, e.dropOwn(context.WithoutCancel(ctx), p, begin)) }()
	}
	for _, name := range names {
		info, notes, err := e.forkOne(ctx, p, begin, name, nil)
		if err == nil && rewind > 0 {
			var back Reverted
			back, err = e.Rewind(ctx, RewindRequest{Dir: request.Dir, Name: name, Iteration: rewind})
			info.Head = back.Commit
			if err != nil {
				err = errors.Join(err, e.dropFork(ctx, request.Dir, name))
			}
		}
		forked.Notes = append(forked.Notes, notes...)
		if err != nil {
			return forked, err
		}
		forked.Forks = append(forked.Forks, info)
	}
	return forked, nil
}

// dropOwn deletes the snapshot that was taken for forks.
func (e *Engine) dropOwn(ctx context.Context, p *place, begin *sandbox.Snapshot) error {
	unlock, err := p.store.Lock(ctx, p.record.ID, "commit")
	if err != nil {
		return err
	}
	defer unlock()
	return e.dropSnapshot(ctx, p, begin)
}

// dropFork deletes a fork that could not be completed.
func (e *Engine) dropFork(ctx context.Context, dir, name string) error {
	_, err := e.Delete(context.WithoutCancel(ctx), DeleteRequest{Dir: dir, Name: name, Force: true, Lean: true})
	return err
}

func forkNames(request ForkRequest) ([]string, error) {
	if request.Count < 0 || request.Count > maxForks {
		return nil, fault.New(fault.Invalid, "cannot make %d forks: between 1 and %d", request.Count, maxForks)
	}
	if request.Count == 0 {
		name, err := sandbox.Slug(request.New)
		return []string{name}, err
	}
	var names []string
	for n := range request.Count {
		name, err := sandbox.Slug(request.New + "-" + strconv.Itoa(n+1))
		if err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, nil
}

// forkPoint is the snapshot that forks begin with: one that is there, or one of
// now. rewind is the iteration that they go back to afterwards, 0 for none; own
// says that the snapshot was taken for this.
func (e *Engine) forkPoint(ctx context.Context, p *place, at string) (begin *sandbox.Snapshot, rewind int, own bool, err error) {
	if number, numberErr := strconv.Atoi(at); numberErr == nil {
		if begin, err := p.snapshotOf(number); err != nil || begin != nil {
			return begin, 0, false, err
		}
		if _, err := p.iteration(number); err != nil {
			return nil, 0, false, err
		}
		rewind = number
	} else if at != "" {
		begin, err = p.findSnapshot(at)
		return begin, 0, false, err
	}
	begin, err = e.snapshot(ctx, p, sandbox.SnapshotFork, "")
	return begin, rewind, true, err
}

// forkOne makes one fork. An error or a kill leaves the same as an unfinished
// create, and the next command clears it away.
func (e *Engine) forkOne(ctx context.Context, p *place, begin *sandbox.Snapshot, name string, worker *sandbox.Worker) (Info, []string, error) {
	defer e.busy("making " + name)()
	found, err := e.settings(ctx, p.record.Repository, p.record.GitDir)
	if err != nil {
		return Info{}, nil, err
	}
	record := begin.Sandbox
	record.Name, record.Branch, record.ID = name, found.config.Git.BranchPrefix+name, ""
	record.State, record.Problem, record.CreatedAt = sandbox.Creating, "", time.Now().UTC().Truncate(time.Millisecond)
	record.Last, record.Forked, record.Iterations = begin.Commit, begin.Commit, begin.Iteration
	record.Worker = worker
	if err := e.claim(ctx, &record); err != nil {
		return Info{}, nil, err
	}
	to := e.place(&record, p.repo, p.driver)
	if err := e.beginFork(ctx, p, begin, to); err != nil {
		if fault.KindOf(err) == fault.AlreadyExists {
			err = branchInTheWay(err, record.Branch, "litterbox fork "+p.record.Name+" "+name)
		}
		return Info{}, to.notes, errors.Join(err, e.discard(context.WithoutCancel(ctx), to))
	}
	e.emit(ctx, p, event(sandbox.EventForked, 0, "into", name, "commit", begin.Commit))
	e.emit(ctx, to, event(sandbox.EventCreated, 0, "branch", record.Branch, "base", record.Base))
	return e.info(&record, begin.Commit, sandbox.Stopped, nil), to.notes, nil
}

// beginFork gives a claimed sandbox everything that the other one has. Its branch
// and its files do not depend on each other, so they are made at the same time.
func (e *Engine) beginFork(ctx context.Context, p *place, begin *sandbox.Snapshot, to *place) error {
	branch := make(chan error, 1)
	go func() {
		branch <- p.repo.CreateBranchFrom(ctx, to.record.Branch, begin.Commit, to.record.ID, to.record.Base)
	}()
	err := e.forkFiles(ctx, p, begin, to)
	if err == nil {
		err = e.forkRecords(p, begin, to)
	}
	if err := errors.Join(<-branch, err); err != nil {
		return err
	}
	to.record.State, to.record.Holder = sandbox.Stopped, sandbox.Process{}
	return errors.Join(to.store.SaveOrigin(to.record), to.store.Save(to.record))
}

func (e *Engine) forkFiles(ctx context.Context, p *place, begin *sandbox.Snapshot, to *place) error {
	unlock, err := p.store.Lock(ctx, p.record.ID, "commit")
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := p.driver.Fork(ctx, p.anyLease(), begin.ID, leaseOf(to)); err != nil {
		return err
	}
	if brancher, can := p.driver.(driver.Brancher); can && to.far() {
		return brancher.Rebranch(ctx, leaseOf(to), p.record.Branch, to.record.Branch)
	}
	return to.files().Rebranch(p.record.Branch, to.record.Branch, e.upperOwner(to))
}

// forkRecords copies what belongs to the files: the log up to the snapshot, what
// is known about the last commit, services that are wanted, and the policy.
func (e *Engine) forkRecords(p *place, begin *sandbox.Snapshot, to *place) error {
	log, err := p.store.Iterations(p.record.ID)
	if err != nil {
		return err
	}
	for n := range log {
		if log[n].Number > begin.Iteration {
			break
		}
		log[n].Cycle = 0 // of the other sandbox
		if err := to.store.AppendIteration(to.record.ID, &log[n]); err != nil {
			return err
		}
	}
	for _, file := range []string{keeper.DeltaFile, store.ServicesFile} {
		if err := copyRecord(p.snapshotFile(begin.ID, file), to.path(file)); err != nil {
			return err
		}
	}
	if err := copyRecord(p.path(keeper.LimitsFile), to.path(keeper.LimitsFile)); err != nil {
		return err
	}
	if p.copied() {
		if err := copyRecord(p.files().Copied(), to.files().Copied()); err != nil {
			return err
		}
	}
	if err := p.quarantine().Share(to.quarantine()); err != nil {
		return err
	}
	policy, err := e.policy(p)
	if err != nil {
		return err
	}
	return to.savePolicy(policy)
}
