package engine

import (
	"cmp"
	"context"
	"slices"

	"github.com/litterbox-sandbox/litterbox/internal/config"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// automatic is the part of [snapshots] that a record keeps.
func automatic(c config.Snapshots) sandbox.Automatic {
	switch c.Every {
	case config.SnapshotIteration, config.SnapshotMilestone:
		return sandbox.Automatic{Every: sandbox.SnapshotKind(c.Every), Keep: cmp.Or(c.Keep, config.KeepSnapshots)}
	}
	return sandbox.Automatic{}
}

// snapshotAfter takes the snapshot that belongs to an iteration or a milestone,
// where the configuration asks for it, and drops automatic ones beyond their
// number. The work is committed: a failure here is a note.
func (e *Engine) snapshotAfter(ctx context.Context, p *place, kind sandbox.SnapshotKind) {
	wanted := p.record.Snapshots
	if wanted.Every == "" || wanted.Every == sandbox.SnapshotMilestone && kind != sandbox.SnapshotMilestone {
		return
	}
	if _, err := e.keep(ctx, p, kind, ""); err != nil {
		if fault.KindOf(err) != fault.Unsupported {
			p.note("no snapshot was taken: " + err.Error())
		}
		return
	}
	if err := e.dropOldest(ctx, p, wanted.Keep); err != nil {
		p.note("snapshots beyond snapshots.keep stay: " + err.Error())
	}
}

// dropOldest drops the oldest automatic snapshots until that many are left.
func (e *Engine) dropOldest(ctx context.Context, p *place, left int) error {
	unlock, err := p.store.Lock(ctx, p.record.ID, "commit")
	if err != nil {
		return err
	}
	defer unlock()
	all, err := p.snapshots()
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(s *sandbox.Snapshot) bool { return !s.Kind.Automatic() })
	if len(all) <= left {
		return nil
	}
	for _, one := range all[:len(all)-left] {
		if err := e.dropSnapshot(ctx, p, one); err != nil {
			return err
		}
	}
	return e.sweepFrozen()
}
