package engine

import (
	"context"
	"errors"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/frozen"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/workspace"
	"github.com/litterbox-sandbox/litterbox/internal/workspace/feed"
	"github.com/litterbox-sandbox/litterbox/internal/workspace/local"
)

// A use case asks the workspace of a sandbox for its files and never opens them:
// they may be where this machine cannot look. Without an answer the state is
// unknown, and unknown is never taken for unchanged: a use case that could lose
// work by that starts the place and asks again, or refuses.

// far reports whether the files are in the place's own machine.
func (p *place) far() bool {
	return p.record.Carriage == sandbox.CarriageFar || p.driver != nil && p.driver.Traits().Files == sandbox.FilesCarried
}

// files are those that this machine has of the sandbox. Of a far sandbox they are
// what it began with, without its changes since.
func (p *place) files() local.Files {
	below, err := p.frozenBelow()
	if err != nil {
		below = []string{p.path(frozen.File)} // no directory: nothing counts as written
	}
	return local.Files{Dir: p.dir, Frozen: below, Layers: p.record.OwnLayers(), Copy: p.copied()}
}

// workspace answers questions about the files at this moment. It starts nothing
// and never fails; its answers may.
func (e *Engine) workspace(p *place) workspace.Workspace {
	if !p.far() {
		return p.files()
	}
	base := workspace.Base{Tree: p.record.Base}
	carrier, lists := p.driver.(driver.Carrier)
	if !lists {
		return workspace.Unanswered{Compared: base, Why: errors.New("its files are in its machine, which does not list them")}
	}
	lease, err := p.store.Lease(p.record.ID)
	if err == nil && (lease == nil || lease.State == sandbox.LeaseReleased) {
		err = errors.New("its files are in its machine, where it does not run")
	}
	if err != nil {
		return workspace.Unanswered{Compared: base, Why: err}
	}
	return feed.Workspace{Source: carrier.Files(p.driverLease(lease)), Compared: base}
}

// forgetPatience is how long a machine may take to remove files.
const forgetPatience = time.Minute

// forgetFar has the machine remove what it keeps of a deleted sandbox.
func (p *place) forgetFar() error {
	carrier, lists := p.driver.(driver.Carrier)
	if !lists || !p.far() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), forgetPatience)
	defer cancel()
	return carrier.Forget(ctx, p.lastLease())
}

// lastLease is how the driver knows the last place of the sandbox.
func (p *place) lastLease() driver.Lease {
	if recorded, err := p.store.Lease(p.record.ID); err == nil && recorded != nil {
		return p.driverLease(recorded)
	}
	return driver.Lease{ID: p.record.ID, SandboxID: p.record.ID, StateDir: p.dir}
}

// hasFiles reports whether the sandbox has files at all, and starts it where only
// its place can say so. An error means that it is not known, and that nothing may
// be done that assumes unchanged files.
func (e *Engine) hasFiles(ctx context.Context, p *place) (bool, error) {
	has, err := e.workspace(p).Exists(ctx)
	if !errors.Is(err, workspace.ErrUnknown) {
		return has, err
	}
	if p.far() {
		stream, starting := e.running(ctx, p, false)
		if starting == nil {
			starting = stream.Close()
		}
		if starting != nil {
			return false, p.unknown(starting)
		}
		has, err = e.workspace(p).Exists(ctx)
	}
	if err != nil {
		return false, p.unknown(err)
	}
	return has, nil
}

// unknown is the refusal to go on without an answer.
func (p *place) unknown(why error) error {
	verb := "start"
	if p.paused {
		verb = "resume"
	}
	return fault.Wrap(fault.Unavailable, why, "cannot tell what sandbox %q holds besides its commits", p.record.Name).
		WithHint("litterbox %s %s, then repeat; litterbox delete %s --force gives up what no commit has", verb, p.record.Name, p.record.Name)
}

// unasked says why a sandbox cannot be cleared away unseen; "" when its files can
// be asked about.
func (e *Engine) unasked(ctx context.Context, p *place) string {
	if _, err := e.workspace(p).Exists(ctx); err != nil {
		return err.Error() + "; litterbox start " + p.record.Name
	}
	return ""
}

// withFiles ends a sentence about a sandbox that was started again. Whether a far
// one then has its files, only its machine knows.
func (p *place) withFiles() string {
	if p.far() {
		return ""
	}
	return " with all its files"
}
