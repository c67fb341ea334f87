package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/live"
	"github.com/litterbox-sandbox/litterbox/internal/process"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// gitShared reports whether the environment has a copy of git's worktree state.
func (p *place) gitShared() bool {
	return p.record.Live != nil && p.record.Live.GitDir != "" && !p.record.Live.WritableGit
}

func (e *Engine) checkout(p *place) live.Checkout {
	return live.Checkout{GitDir: p.record.Live.GitDir, Shared: p.record.GitDir, Dir: p.dir, Common: driver.LiveCommon, Format: p.record.Live.Format, Owner: e.upperOwner(p)}
}

// liveWorkspace is the project itself, without what stays read-only in it.
func (p *place) liveWorkspace() (driver.Workspace, error) {
	w := driver.Workspace{Path: p.record.Repository, Live: &driver.Live{}}
	if p.record.Live.WritableGit {
		return w, nil
	}
	protected, err := p.protected()
	if err != nil {
		return w, err
	}
	w.Live.ReadOnly, w.Live.Fixed = protected.ReadOnly, protected.Fixed
	if p.gitShared() {
		dotGit := filepath.Join(p.record.Repository, ".git")
		w.Live.Git = &driver.LiveGit{Own: p.path(live.OwnDir), Logs: p.path(live.LogsDir), Common: p.record.GitDir, Linked: p.record.Live.GitDir != dotGit}
	}
	return w, nil
}

func (p *place) protected() (live.Protected, error) {
	repository := live.Repository{GitDir: p.record.Live.GitDir, CommonDir: p.record.GitDir, Format: p.record.Live.Format}
	if repository.GitDir != "" {
		settings, err := p.repo.Settings()
		if err != nil {
			return live.Protected{}, err
		}
		repository.HooksPath = settings.Values["core.hookspath"]
	}
	return live.Protect(p.record.Repository, repository)
}

// shareEvery is how often HEAD and index are brought together while a command runs:
// a commit inside shows outside at most this long after.
const shareEvery = time.Second

// shareGit brings HEAD and index of checkout and environment together, keeps doing
// so, and does it a last time when the returned function is called. That function
// also names files made in the environment that run code on the host.
func (e *Engine) shareGit(ctx context.Context, p *place) (end func() ([]string, error), err error) {
	if p.record.Live.WritableGit {
		return func() ([]string, error) { return nil, nil }, nil
	}
	before, err := p.protected()
	if err != nil {
		return nil, err
	}
	fresh := func(notes []string) []string {
		after, err := p.protected()
		if err != nil {
			return append(notes, "what the environment has made is not known: "+err.Error())
		}
		for _, name := range after.ReadOnly {
			if !slices.Contains(before.ReadOnly, name) && !strings.HasSuffix(name, "/.git") {
				notes = append(notes, quoteCommand([]string{name})+" is new since this command began, and programs outside run what is in it: look at it first")
			}
		}
		if _, err := os.Lstat(filepath.Join(p.record.Repository, ".git")); err == nil && p.record.Live.GitDir == "" {
			notes = append(notes, "a git repository is new in "+p.record.Repository+": git outside would run by its configuration; look at .git/config first")
		}
		return notes
	}
	if !p.gitShared() {
		return func() ([]string, error) { return fresh(nil), nil }, nil
	}
	checkout := e.checkout(p)
	locked := func(ctx context.Context, prepare bool) ([]string, error) {
		unlock, err := p.store.Lock(ctx, p.record.ID, "git") // of many first shells, one prepares
		if err != nil {
			return nil, err
		}
		defer unlock()
		if prepare {
			if err := checkout.Prepare(); err != nil {
				return nil, err
			}
		}
		return checkout.Sync()
	}
	sync := func(ctx context.Context) ([]string, error) { return locked(ctx, false) }
	if _, err := locked(ctx, true); err != nil {
		return nil, err
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(shareEvery)
		defer ticker.Stop()
		for {
			select {
			case <-stop:
				return
			case <-ticker.C:
				_, _ = sync(ctx) // the last one says what is wrong
			}
		}
	}()
	return func() ([]string, error) {
		close(stop)
		<-done
		notes, err := sync(context.WithoutCancel(ctx))
		return fresh(notes), err
	}, nil
}

// finishCycles records the end of commands whose client died. They have nothing to
// commit.
func (e *Engine) finishCycles(ctx context.Context, p *place) error {
	cycles, err := p.store.LiveCycles(ctx, p.record.ID)
	var problems []error
	for i := range cycles {
		if cycle := &cycles[i]; !process.Alive(cycle.Holder) {
			cycle.State, cycle.Problem, cycle.CompletedAt = sandbox.CycleFailed, "its client died", time.Now()
			problems = append(problems, p.store.SaveCycle(p.record.ID, cycle))
		}
	}
	if err = errors.Join(err, errors.Join(problems...)); err != nil {
		return fault.Wrap("", err, "cannot finish what was cut off in environment %s", p.record.Name)
	}
	return nil
}
