package engine

import (
	"context"
	"errors"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/branch"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// Restored is a sandbox that came back from the trash.
type Restored struct {
	Name  string `json:"name"`
	Tip   string `json:"tip"`
	Files bool   `json:"files"` // with its files, its home and its log
}

// Restore brings a deleted sandbox back: its branch, and with its files its home
// and its log where those are kept. Otherwise it is a new sandbox that begins
// with its last commit. It does not run.
func (e *Engine) Restore(ctx context.Context, dir, name string) (restored Restored, notes []string, err error) {
	ctx, call, err := e.record(ctx, "trash restore", dir, name, nil)
	if err != nil {
		return Restored{}, nil, err
	}
	defer func() { err = call.close(Outcome{Tip: restored.Tip, Err: err}) }()
	one, older, err := e.findTrashed(ctx, dir, name)
	if err != nil {
		return Restored{}, nil, err
	}
	restored = Restored{Name: one.Name, Tip: one.Tip, Files: one.Files}
	if one.Files {
		err = e.restoreFiles(context.WithoutCancel(ctx), one)
	} else {
		notes, err = e.restoreCommits(ctx, dir, one)
	}
	if err == nil && len(older) > 0 {
		notes = append(notes, "this is the newest of that name; older ones stay in the trash: "+strings.Join(older, ", "))
	}
	return restored, notes, err
}

// restoreFiles does each step so that the next call can continue after a kill: the
// entry is in the trash until the directory is back, which is the last step.
func (e *Engine) restoreFiles(ctx context.Context, one Trashed) error {
	trash := e.Store.Trash()
	record, err := trash.Sandbox(one.id)
	if err != nil {
		return err
	}
	if e.Drivers.Get(record.Driver) == nil {
		return fault.New(fault.Unsupported, "cannot restore sandbox %q: this program has no driver %q", record.Name, record.Driver)
	}
	if _, err := e.clearDead(ctx, record.GitDir, record.Name); err != nil {
		return err
	}
	records := e.Store.Durable(record.Strict)
	if err := records.Reclaim(record.GitDir, record.Name, record.ID); err != nil {
		return err
	}
	err = e.remakeTrashed(ctx, one, record)
	if err == nil {
		record.State, record.Holder = sandbox.Stopped, sandbox.Process{}
		err = records.Trash().Save(record)
	}
	if err == nil {
		err = trash.MoveTo(records, record.ID)
	}
	if err != nil {
		return errors.Join(err, records.Release(record.GitDir, record.Name, record.ID))
	}
	p := e.place(record, one.repo, e.Drivers.Get(record.Driver))
	e.emit(ctx, p, event(sandbox.EventRestored, 0, "tip", one.Tip))
	return p.store.DropDeletion(record.ID)
}

// remakeTrashed makes the branch of an entry again, unless an interrupted call has done
// so.
func (e *Engine) remakeTrashed(ctx context.Context, one Trashed, record *sandbox.Sandbox) error {
	if one.tip.Ref != "" {
		err := branch.Untrash(ctx, one.repo, one.tip, record.Branch)
		if fault.KindOf(err) == fault.AlreadyExists {
			// git may have died between the two refs.
			tip, tipErr := one.repo.Tip(ctx, record.Branch)
			if tipErr != nil && fault.KindOf(tipErr) != fault.NotFound {
				return tipErr
			}
			if tip == one.Tip {
				return errors.Join(branch.DropTrash(ctx, one.repo, one.tip), one.repo.Pin(ctx, record.ID, record.Base))
			}
			return branchInTheWay(err, record.Branch, "litterbox trash restore "+one.Name)
		}
		return errors.Join(err, one.repo.Pin(ctx, record.ID, record.Base))
	}
	tip, err := one.repo.Tip(ctx, record.Branch)
	switch {
	case fault.KindOf(err) == fault.NotFound:
		return fault.Wrap(fault.Conflict, err, "cannot restore sandbox %q: its last commit is no longer kept", one.Name).
			WithHint("litterbox trash empty %s", one.Entry)
	case err == nil && tip != one.Tip:
		return branchInTheWay(fault.New(fault.AlreadyExists, "cannot restore the branch %q: it exists", record.Branch), record.Branch, "litterbox trash restore "+one.Name)
	}
	return errors.Join(err, one.repo.Pin(ctx, record.ID, record.Base))
}

// branchInTheWay says what to type where a branch already has the name.
func branchInTheWay(err error, name, then string) error {
	return fault.Wrap(fault.AlreadyExists, err, "a branch of that name is in the way").
		WithHint("git branch -m %s %s-old, then %s", name, name, then)
}

// restoreCommits makes a sandbox that begins with the last commit of a deleted
// one.
func (e *Engine) restoreCommits(ctx context.Context, dir string, one Trashed) ([]string, error) {
	made, err := e.Create(ctx, CreateRequest{Dir: dir, Name: one.Name, Base: one.Tip})
	if err != nil {
		return nil, err
	}
	notes := append(made.Notes, "its files were not kept: it begins with its last commit")
	if _, err := e.Stop(ctx, StopRequest{Dir: dir, Name: one.Name}); err != nil {
		return notes, err
	}
	return notes, branch.DropTrash(context.WithoutCancel(ctx), one.repo, one.tip)
}
