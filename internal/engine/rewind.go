package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/litterbox-sandbox/litterbox/internal/branch"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/hostile"
	"github.com/litterbox-sandbox/litterbox/internal/layer"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// RewindRequest asks for the files and the branch of an iteration.
type RewindRequest struct {
	Dir, Name string
	Iteration int
	// Commits takes the files from commits alone, while the sandbox goes on
	// running, even where there is a snapshot of the iteration.
	Commits bool
	// Stop and ConfirmStop are those of RestoreRequest, for a snapshot.
	Stop        bool
	ConfirmStop func([]Work) (bool, error)
}

// Rewind restores files and branch to their state after an iteration. Where there
// is a snapshot of it, that snapshot is restored. Else the files come from the
// commit: ignored files, HOME and the agent's own git stay as they are. The state
// before is kept as a snapshot either way, and later commits stay reachable.
func (e *Engine) Rewind(ctx context.Context, request RewindRequest) (result Reverted, err error) {
	p, err := e.find(ctx, request.Dir, request.Name)
	if err != nil {
		return Reverted{}, err
	}
	defer e.tell(p)
	to, err := p.iteration(request.Iteration)
	if err != nil {
		return Reverted{}, err
	}
	ctx, call, err := e.recordIn(ctx, p, "rewind", map[string]any{"iteration": request.Iteration})
	if err != nil {
		return Reverted{}, err
	}
	defer func() { err = call.end(result.Commit, nil, err) }()
	if !request.Commits {
		exact, err := p.snapshotOf(request.Iteration)
		if err != nil {
			return Reverted{}, err
		}
		if exact != nil {
			return e.restore(ctx, p, exact, RestoreRequest{Dir: request.Dir, Name: request.Name, Stop: request.Stop, ConfirmStop: request.ConfirmStop,
				again: "litterbox rewind --stop " + p.record.Name + " " + itoa(request.Iteration) + " (--commits leaves it running)"})
		}
	}
	return e.rewind(ctx, p, to)
}

// rewind takes the files back by the sandbox's own guest, as one more iteration,
// and then the branch. A kill in between leaves that iteration on the branch.
func (e *Engine) rewind(ctx context.Context, p *place, to *sandbox.Iteration) (result Reverted, err error) {
	defer e.busy("rewinding " + p.record.Name)()
	result = Reverted{Name: p.record.Name, To: itoa(to.Number), Ended: []Work{}}
	stream, err := e.running(ctx, p, false)
	if err != nil {
		return result, err
	}
	if err := stream.Close(); err != nil {
		return result, err
	}
	before, err := e.snapshot(ctx, p, sandbox.SnapshotBefore, "before rewinding to "+itoa(to.Number))
	switch {
	case err == nil:
		result.Before = before.Name()
	case fault.KindOf(err) == fault.Unsupported:
		p.note("no snapshot of what was there: " + err.Error() + "; ignored files stay, and the rest is in commits")
	default:
		return result, err
	}
	tip, err := p.repo.Tip(ctx, p.record.Branch)
	if err != nil {
		return result, err
	}
	changes, err := p.repo.DiffTrees(ctx, tip, to.Commit)
	if err != nil {
		return result, fault.Wrap("", err, "cannot compare iteration %d with sandbox %q", to.Number, p.record.Name)
	}
	made, notes, err := e.change(ctx, p, "rewind", "rewind to "+itoa(to.Number), "rewind to iteration "+itoa(to.Number), func(stream wire.Stream) error {
		return e.takeBack(ctx, p, to.Commit, changes)
	})
	p.note(notes...)
	if err != nil {
		return result, err
	}
	result.Commit, result.Iteration = made.Commit, made.Number
	moved, err := e.moveBranchBack(context.WithoutCancel(ctx), p, to.Commit)
	if err != nil {
		return result, err
	}
	if moved {
		result.Commit = to.Commit
		e.emit(ctx, p, event(sandbox.EventReverted, 0, "snapshot", itoa(to.Number), "commit", to.Commit))
	} else {
		p.note("the branch goes on from where it was: some files could not be taken back")
	}
	p.note("ignored files, HOME and the sandbox's own git stay as they are: they are in no commit")
	return result, nil
}

// takeBack has the guest write the files of a commit that differ, and remove
// those that it does not have.
func (e *Engine) takeBack(ctx context.Context, p *place, commit string, changes []git.TreeDiff) (err error) {
	var gone [][]byte
	var back []string
	for _, c := range changes {
		switch {
		case c.NewMode == git.ModeGitlink || c.NewMode == 0 && c.OldMode == git.ModeGitlink:
			p.note(fmt.Sprintf("the submodule %q stays where it is", c.Path))
			continue
		case c.NewMode != 0:
			back = append(back, c.Path) // it takes the place of what is there, in one step
		default:
			gone = append(gone, []byte(c.Path))
		}
	}
	dir := p.path("rewind")
	if err := hostile.Remove(dir); err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot make way for the files of %s", commit)
	}
	defer func() { err = errors.Join(err, hostile.Remove(dir)) }()
	if err := layer.CheckOutPaths(ctx, p.repo, commit, back, dir); err != nil {
		return err
	}
	const batch = 2000
	for some := range slices.Chunk(gone, batch) {
		stream, err := p.dial(ctx)
		if err != nil {
			return err
		}
		err = wire.Ask(ctx, stream, wire.Request{Op: wire.OpRemove, Paths: some})
		if err = errors.Join(err, stream.Close()); err != nil {
			return err
		}
	}
	if len(back) == 0 {
		return nil
	}
	stream, err := p.dial(ctx)
	if err != nil {
		return err
	}
	defer stream.Close()
	return sendFiles(ctx, stream, dir+"/files", back)
}

// moveBranchBack moves the branch once its tree is that of the commit.
func (e *Engine) moveBranchBack(ctx context.Context, p *place, commit string) (bool, error) {
	unlock, err := p.store.Lock(ctx, p.record.ID, "commit")
	if err != nil {
		return false, err
	}
	defer unlock()
	moved, err := branch.Back(ctx, p.repo, branch.BackRequest{ID: p.record.ID, Branch: p.record.Branch, To: commit, State: p.deltaFile()})
	if err != nil || !moved {
		return false, err
	}
	milestone := p.record.Milestone
	if contains, err := p.repo.IsAncestor(ctx, milestone, commit); err != nil || !contains {
		milestone = p.record.Base // the last one is no longer part of the branch
	}
	onto, ref := p.record.Onto, p.record.OntoRef
	if onto != "" {
		if contains, err := p.repo.IsAncestor(ctx, onto, commit); err != nil || !contains {
			onto, ref = "", "" // likewise
		}
	}
	return true, e.update(ctx, p, func(r *sandbox.Sandbox) {
		r.Last, r.Milestone, r.Onto, r.OntoRef = commit, milestone, onto, ref
	})
}

// iteration finds one of the log that has a commit.
func (p *place) iteration(number int) (*sandbox.Iteration, error) {
	log, err := p.store.Iterations(p.record.ID)
	if err != nil {
		return nil, err
	}
	for n := range slices.Backward(log) {
		if log[n].Number == number && log[n].Commit != "" {
			return &log[n], nil
		}
	}
	return nil, fault.New(fault.NotFound, "sandbox %q has no iteration %d with a commit", p.record.Name, number).
		WithHint("litterbox log %s", p.record.Name)
}

// snapshotOf is the newest snapshot that was taken after an iteration and before
// the next one; nil when there is none.
func (p *place) snapshotOf(iteration int) (*sandbox.Snapshot, error) {
	all, err := p.snapshots()
	if err != nil {
		return nil, err
	}
	for _, one := range slices.Backward(all) {
		if one.Iteration == iteration && one.Kind != sandbox.SnapshotFork {
			return one, nil
		}
	}
	return nil, nil
}
