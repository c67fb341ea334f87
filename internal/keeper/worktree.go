package keeper

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/landing"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// In the sandbox's directory: WorktreeDir holds its committed files with what
// belongs to them (package branch), OldWorktreeDir the same of a version that
// had the files in the user's checkout.
const (
	WorktreeDir    = "committed"
	OldWorktreeDir = "worktree"
)

// worktreeRest is how long after a commit the plain files follow: of a burst of commits only the last one counts, and the next command
// does not share the machine.
const worktreeRest = 2 * time.Second

// lastWord is how long a stop waits for git to finish writing the files.
const lastWord = 500 * time.Millisecond

// worktree makes the plain files of a sandbox follow its branch.
type worktree struct {
	mu     sync.Mutex
	timer  *time.Timer
	armed  bool // it has yet to fire
	closed bool
	cancel context.CancelFunc
	done   sync.WaitGroup
}

// committing records that a commit is on its way.
func (k *keeper) committing() {
	w := &k.worktree
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || w.armed {
		return
	}
	w.armed = true
	w.timer = time.AfterFunc(worktreeRest, k.follow)
}

// follow writes what the branch holds now.
func (k *keeper) follow() {
	w := &k.worktree
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return
	}
	if w.cancel != nil { // it is still being written
		w.timer = time.AfterFunc(worktreeRest, k.follow)
		w.mu.Unlock()
		return
	}
	w.armed = false
	ctx, cancel := context.WithCancel(k.base)
	w.cancel = cancel
	w.done.Add(1)
	w.mu.Unlock()
	defer w.done.Done()
	if err := k.fillWorktree(ctx); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "keeper: the worktree does not follow:", err)
	}
	w.mu.Lock()
	w.cancel = nil
	w.mu.Unlock()
	cancel()
}

func (k *keeper) fillWorktree(ctx context.Context) error {
	id := k.order.Spec.SandboxID
	// Wait for a commit that is under way.
	unlock, err := k.store.Lock(ctx, id, "commit")
	if err != nil {
		return err
	}
	unlock()
	record, err := k.store.Sandbox(id)
	if errors.Is(err, os.ErrNotExist) || err == nil && (record.State == sandbox.Deleting || record.State == sandbox.Creating) {
		return nil
	}
	if err != nil {
		return err
	}
	repo := git.At(ctx, record.GitDir, record.Repository, record.Base)
	tip, err := repo.Tip(ctx, record.Branch)
	if fault.KindOf(err) == fault.NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	w := landing.Worktree{
		Name: record.Name, State: filepath.Join(k.order.Spec.StateDir, WorktreeDir), Old: filepath.Join(k.order.Spec.StateDir, OldWorktreeDir),
	}
	// A sandbox that was started by an earlier version may have files in the
	// checkout. The next command reports what is left of them.
	if !landing.HasOldWorktree(repo, w) {
		return landing.FollowWorktree(ctx, repo, w, tip)
	}
	return nil
}

// close ends the following: the files may be deleted next.
func (w *worktree) close() {
	w.mu.Lock()
	w.closed = true
	if w.timer != nil {
		w.timer.Stop()
	}
	cancel := w.cancel
	w.mu.Unlock()
	if cancel != nil {
		grace := time.AfterFunc(lastWord, cancel)
		defer grace.Stop()
	}
	w.done.Wait()
}
