package engine

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/hostile"
	"github.com/litterbox-sandbox/litterbox/internal/landing"
	"github.com/litterbox-sandbox/litterbox/internal/process"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

func (e *Engine) markDeleting(ctx context.Context, p *place) error {
	self, err := process.Identify(os.Getpid())
	if err != nil {
		return fault.Wrap(fault.Internal, err, "cannot identify this process")
	}
	return e.update(ctx, p, func(r *sandbox.Sandbox) { r.State, r.Holder = sandbox.Deleting, self })
}

// recordFile is the record of a sandbox in its directory.
const recordFile = "sandbox.json"

// worktreePatience is how long a git that still writes the sandbox's worktree is
// waited for.
const worktreePatience = 30 * time.Second

// remove deletes the sandbox's directory and gives its name up, in this order:
// a name that is free has no files left.
func (e *Engine) remove(p *place) error {
	if err := unmounted(p.dir); err != nil {
		return err
	}
	if err := e.removeWorktree(p); err != nil {
		return err
	}
	if err := p.forgetFar(); err != nil {
		return e.leaveGone(p, err)
	}
	// The record goes last: while anything is left, it says that this is being
	// deleted.
	entries, err := os.ReadDir(p.dir)
	for _, entry := range entries {
		if entry.Name() != recordFile {
			err = errors.Join(err, hostile.Remove(p.path(entry.Name())))
		}
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = hostile.Remove(p.dir)
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot remove the files of sandbox %q", p.record.Name).
			WithHint("litterbox delete --force %s", p.record.Name)
	}
	return errors.Join(p.store.Release(p.record.GitDir, p.record.Name, p.record.ID), e.sweepFrozen())
}

// unmounted refuses where something is mounted: removing a directory would remove
// what is in the mount, whatever its source.
func unmounted(dir string) error {
	points, err := mountsBelow(dir)
	if err != nil || len(points) == 0 {
		return err
	}
	return fault.New(fault.Conflict, "cannot remove %q: something is mounted at %q", dir, points[0]).
		WithHint("umount %s", points[0])
}

func removeUnmounted(dir string) error {
	if err := unmounted(dir); err != nil {
		return err
	}
	return hostile.Remove(dir)
}

// removeWorktree removes a sandbox's worktree from the checkout.
func (e *Engine) removeWorktree(p *place) error {
	ctx, cancel := context.WithTimeout(context.Background(), worktreePatience)
	defer cancel()
	note, err := landing.RemoveWorktree(ctx, p.repo, p.worktree())
	if note != "" {
		p.note(note)
	}
	return err
}
