package engine

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// RenameRequest gives a sandbox another name.
type RenameRequest struct {
	Dir, Name, New string
	KeepBranch     bool // the branch keeps its name
}

// Renamed is the new name of a sandbox.
type Renamed struct {
	Old    string   `json:"old"`
	Name   string   `json:"name"`
	Branch string   `json:"branch"`
	Notes  []string `json:"notes"`
}

// renamingFile is there while a sandbox is being renamed. A command that finds it
// finishes the renaming.
const renamingFile = "renaming.json"

type renaming struct {
	Version int    `json:"version"`
	From    string `json:"from"`
	To      string `json:"to"`
	Branch  string `json:"branch"` // as it was
	Renamed string `json:"renamed"`
	Tip     string `json:"tip"`
}

// Rename gives a sandbox, and its branch where that is named after it, another
// name. A sandbox that runs is stopped if nothing is at work in it.
func (e *Engine) Rename(ctx context.Context, request RenameRequest) (renamed Renamed, err error) {
	name, err := sandbox.Slug(request.New)
	if err != nil {
		return Renamed{}, err
	}
	p, err := e.find(ctx, request.Dir, request.Name)
	if err != nil {
		return Renamed{}, err
	}
	defer func() { renamed.Notes = append([]string{}, p.notes...) }()
	ctx, call, err := e.recordIn(ctx, p, "rename", map[string]any{"new": name, "keep_branch": request.KeepBranch})
	if err != nil {
		return Renamed{}, err
	}
	defer func() { err = call.end("", nil, err) }()
	old := p.record.Name
	switch {
	case p.record.Live != nil:
		return Renamed{}, fault.New(fault.Unsupported, "cannot rename %q: an environment is known by its directory", old)
	case name == old:
		return Renamed{Old: old, Name: old, Branch: p.record.Branch}, nil
	}
	if err := e.endForRename(ctx, p, name); err != nil {
		return Renamed{}, err
	}
	unlock, live, err := e.still(ctx, p)
	if err != nil {
		return Renamed{}, err
	}
	defer unlock()
	if live {
		return Renamed{}, fault.New(fault.Conflict, "cannot rename sandbox %q: it was just started", old).
			WithHint("litterbox stop %s, then litterbox rename %s %s", old, old, name)
	}
	fresh, err := p.store.Sandbox(p.record.ID)
	if err != nil {
		return Renamed{}, err
	}
	if fresh.Name != old {
		return Renamed{}, fault.New(fault.Conflict, "cannot rename sandbox %q: it is %q by now", old, fresh.Name)
	}
	*p.record = *fresh
	todo := renaming{Version: sandbox.RecordVersion, From: old, To: name, Branch: p.record.Branch, Renamed: p.record.Branch}
	if prefix, ok := strings.CutSuffix(p.record.Branch, old); ok && !request.KeepBranch {
		todo.Renamed = prefix + name
	}
	if todo.Tip, err = p.repo.Tip(ctx, p.record.Branch); err != nil {
		return Renamed{}, err
	}
	ctx = context.WithoutCancel(ctx) // from here on it is finished, or taken back
	if err := p.store.SaveRecord(p.record.ID, renamingFile, todo); err != nil {
		return Renamed{}, err
	}
	if err := e.carryOutRename(ctx, p, todo); err != nil {
		return Renamed{}, err
	}
	return Renamed{Old: old, Name: p.record.Name, Branch: p.record.Branch}, nil
}

// endForRename stops a sandbox in which nothing is at work.
func (e *Engine) endForRename(ctx context.Context, p *place, name string) error {
	if state, _ := e.state(ctx, p.record); state != sandbox.Running && state != sandbox.Paused {
		return nil
	}
	work, err := e.workBefore(ctx, p, false)
	if err != nil {
		return err
	}
	if err := mayEnd(p.record.Name, "rename", holding(work), false, nil); err != nil {
		if fault.KindOf(err) == fault.Conflict {
			err = fault.Wrap("", err, "it has to be stopped").WithHint("end it, or litterbox stop %s, then litterbox rename %s %s", p.record.Name, p.record.Name, name)
		}
		return err
	}
	if err := e.end(ctx, p, "stop", ""); err != nil {
		return err
	}
	if err := e.settle(ctx, p); err != nil {
		return err
	}
	if err := e.stop(ctx, p); err != nil {
		return err
	}
	return e.update(ctx, p, func(r *sandbox.Sandbox) { r.State = sandbox.Stopped })
}

// carryOutRename does every step so that it can be repeated. The caller holds the
// locks of the lease and of commits, and nothing runs. A refusal before the record
// has the new name is rolled back.
func (e *Engine) carryOutRename(ctx context.Context, p *place, todo renaming) error {
	done := func() error {
		if err := os.Remove(p.path(renamingFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fault.Wrap(fault.Unavailable, err, "cannot finish the renaming of sandbox %q", todo.To)
		}
		return nil
	}
	if p.record.Name == todo.From {
		if err := p.store.ClaimAlso(p.record.GitDir, todo.To, p.record.ID); err != nil {
			return errors.Join(err, done())
		}
		if err := e.removeWorktree(p); err != nil {
			return errors.Join(err, p.store.Release(p.record.GitDir, todo.To, p.record.ID), done())
		}
		if err := e.renameBranch(ctx, p, todo); err != nil {
			if fault.KindOf(err) == fault.AlreadyExists {
				err = branchInTheWay(err, todo.Renamed, "litterbox rename "+todo.From+" "+todo.To)
			}
			return errors.Join(err, p.store.Release(p.record.GitDir, todo.To, p.record.ID), done())
		}
		if err := e.update(ctx, p, func(r *sandbox.Sandbox) { r.Name, r.Branch = todo.To, todo.Renamed }); err != nil {
			return err
		}
	}
	if err := p.store.SaveOrigin(p.record); err != nil {
		return err
	}
	if err := p.store.Release(p.record.GitDir, todo.From, p.record.ID); err != nil {
		return err
	}
	return done()
}

func (e *Engine) renameBranch(ctx context.Context, p *place, todo renaming) error {
	if todo.Branch == todo.Renamed {
		return nil
	}
	if _, err := p.repo.Tip(ctx, todo.Branch); fault.KindOf(err) == fault.NotFound {
		if tip, err := p.repo.Tip(ctx, todo.Renamed); err == nil && tip == todo.Tip {
			return nil // renamed before a kill
		}
	}
	return p.repo.RenameBranch(ctx, todo.Branch, todo.Renamed)
}

// finishRename finishes a renaming that a dead command began. It costs a look at
// one name where there is none.
func (e *Engine) finishRename(ctx context.Context, p *place) error {
	if !fileExists(p.path(renamingFile)) {
		return nil
	}
	unlock, err := p.held(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	var todo renaming
	found, err := p.store.Record(p.record.ID, renamingFile, &todo)
	if err != nil || !found {
		return err // another command has done it meanwhile
	}
	fresh, err := p.store.Sandbox(p.record.ID)
	if err != nil {
		return err
	}
	*p.record = *fresh
	p.note("an interrupted renaming of sandbox " + todo.From + " to " + todo.To + " is finished")
	return e.carryOutRename(context.WithoutCancel(ctx), p, todo)
}
