package engine

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/branch"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/hostile"
	"github.com/litterbox-sandbox/litterbox/internal/process"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// claim takes the name. A claim whose creator died is cleared away first:
// it never became a sandbox.
func (e *Engine) claim(ctx context.Context, record *sandbox.Sandbox) error {
	records := e.Store.Durable(record.Strict)
	id, err := records.Claim(record.GitDir, record.Name)
	if fault.KindOf(err) == fault.AlreadyExists {
		cleared, clearErr := e.clearDead(ctx, record.GitDir, record.Name)
		if clearErr != nil {
			return clearErr
		}
		if cleared {
			id, err = records.Claim(record.GitDir, record.Name)
		}
	}
	if err != nil {
		return err
	}
	record.ID = id
	if record.Holder, err = process.Identify(os.Getpid()); err != nil {
		return fault.Wrap(fault.Unsupported, err, "cannot create a sandbox on this system").
			WithHint("run litterbox on Linux")
	}
	return records.Save(record)
}

// discard takes back everything that an unfinished create has made. The record goes
// only after the branch: without it nothing knows whose branch that is. Cut off in
// between, it counts as unfinished, and the next command begins here again.
func (e *Engine) discard(ctx context.Context, p *place) error {
	if p.record.State != sandbox.Creating && p.record.State != sandbox.Deleting {
		self, err := process.Identify(os.Getpid())
		if err == nil {
			err = e.update(ctx, p, func(r *sandbox.Sandbox) { r.State, r.Holder = sandbox.Creating, self })
		}
		if err != nil {
			return fault.Wrap("", err, "cannot take back what was made of sandbox %q", p.record.Name)
		}
	}
	err := e.stop(ctx, p)
	// Branch and pin were made together, or the branch belongs to another.
	pinned, pinErr := p.repo.Pinned(ctx, p.record.ID)
	if pinErr != nil {
		return errors.Join(err, pinErr)
	}
	if pinned {
		if branchErr := discardBranch(ctx, p); branchErr != nil {
			return errors.Join(err, branchErr)
		}
	}
	if unpinErr := p.repo.Unpin(ctx, p.record.ID); unpinErr != nil {
		return errors.Join(err, unpinErr)
	}
	return errors.Join(err, e.remove(p))
}

// discardBranch deletes the branch of an unfinished create, if there is one.
func discardBranch(ctx context.Context, p *place) error {
	tip, err := p.repo.Tip(ctx, p.record.Branch)
	switch {
	case fault.KindOf(err) == fault.NotFound:
		return nil
	case err != nil:
		return err
	case tip == p.record.Base || tip == p.record.Forked:
		return p.repo.DeleteBranch(ctx, p.record.Branch, tip)
	}
	// Set-up had committed something: it goes where deletions go.
	_, _, err = branch.Trash(ctx, p.repo, p.record.Branch, p.record.Name, time.Now())
	return err
}

// clearDead removes what a create or delete that died has left of name. It
// reports whether the name is free now.
func (e *Engine) clearDead(ctx context.Context, gitDir, name string) (bool, error) {
	id, err := e.Store.Claimed(gitDir, name)
	if err != nil || id == "" {
		return id == "", err
	}
	record, err := e.sandbox(ctx, id)
	if errors.Is(err, os.ErrNotExist) {
		// Claimed, and its creator died before the first record; a creator
		// that lives writes the record within a moment.
		return e.clearClaim(gitDir, name, id)
	}
	if err != nil {
		return false, err
	}
	if record.Name != name {
		// It has another name, or is about to.
		p, err := e.open(ctx, record)
		if err == nil {
			err = e.finishRename(ctx, p)
		}
		if err != nil {
			return false, err
		}
		id, err = e.Store.Claimed(gitDir, name)
		return id == "", err
	}
	dead := (record.State == sandbox.Creating || record.State == sandbox.Deleting) && !process.Alive(record.Holder)
	if !dead {
		return false, nil
	}
	p := e.place(record, e.memory().At(ctx, gitDir, record.Repository, record.Base), e.Drivers.Get(record.Driver))
	if record.State == sandbox.Deleting {
		d, err := e.Store.Deletion(id)
		if err == nil {
			return true, e.finishDeletion(ctx, p, d)
		}
		if !errors.Is(err, os.ErrNotExist) {
			return false, err
		}
	}
	return true, e.discard(ctx, p)
}

// claimAge is how long a claim without a record counts as being made.
const claimAge = 10 * time.Second

func (e *Engine) clearClaim(gitDir, name, id string) (bool, error) {
	if held, err := e.claimHeld(gitDir, name, id); err != nil || held {
		return false, err
	}
	if err := hostile.Remove(e.Store.SandboxDir(id)); err != nil {
		return false, fault.Wrap(fault.Unavailable, err, "cannot clear away a half-made sandbox")
	}
	return true, e.Store.Release(gitDir, name, id)
}

// claimHeld reports whether a claim without a record may still become a sandbox.
func (e *Engine) claimHeld(gitDir, name, id string) (bool, error) {
	if !fileExists(e.Store.SandboxDir(id)) && fileExists(e.Store.Trash().SandboxDir(id)) {
		return false, nil // deleted, or not yet restored
	}
	_, by, err := e.Store.Claimant(gitDir, name)
	if err != nil {
		return false, err
	}
	if by.PID != 0 {
		return process.Alive(by), nil
	}
	info, err := os.Stat(e.Store.SandboxDir(id))
	return err == nil && time.Since(info.ModTime()) < claimAge, nil
}

// unfinished says what a half-made or half-deleted sandbox needs.
func (e *Engine) unfinished(record *sandbox.Sandbox) error {
	if process.Alive(record.Holder) {
		return fault.New(fault.Conflict, "sandbox %q is still %s", record.Name, record.State).
			WithHint("wait a moment, then litterbox list")
	}
	if record.State == sandbox.Deleting {
		return fault.New(fault.NotFound, "sandbox %q was being deleted when that was interrupted", record.Name).
			WithHint("litterbox delete --force %s", record.Name)
	}
	return fault.New(fault.NotFound, "sandbox %q was never finished: its creation was interrupted", record.Name).
		WithHint("litterbox create %s", record.Name)
}
