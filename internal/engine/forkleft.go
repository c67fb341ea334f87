package engine

import (
	"context"
	"slices"

	"github.com/litterbox-sandbox/litterbox/internal/process"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// A fork takes a snapshot to begin with and deletes it at the end. A kill in between
// leaves it: the next command that takes or lists snapshots of the sandbox deletes
// it, and so does litterbox doctor --fix.

// leftByFork reports whether a snapshot was taken for forks by a command that has
// ended without deleting it.
func leftByFork(s *sandbox.Snapshot) bool {
	return s.Kind == sandbox.SnapshotFork && !process.Alive(s.Holder)
}

// dropAbandoned deletes the abandoned ones of had. The caller holds the lock of
// commits.
func (e *Engine) dropAbandoned(ctx context.Context, p *place, had []*sandbox.Snapshot) error {
	for _, one := range had {
		if !leftByFork(one) {
			continue
		}
		if err := e.dropSnapshot(ctx, p, one); err != nil {
			return err
		}
	}
	return nil
}

// withoutAbandoned deletes the abandoned snapshots, and returns the others. What
// cannot be deleted is left out all the same.
func (e *Engine) withoutAbandoned(ctx context.Context, p *place, had []*sandbox.Snapshot) []*sandbox.Snapshot {
	if !slices.ContainsFunc(had, leftByFork) {
		return had
	}
	if err := e.clearAbandoned(ctx, p); err != nil {
		p.note("what an interrupted fork left is still there: " + err.Error())
	}
	return slices.DeleteFunc(had, leftByFork)
}

// clearAbandoned deletes the abandoned snapshots of a sandbox and their files.
func (e *Engine) clearAbandoned(ctx context.Context, p *place) error {
	unlock, err := p.store.Lock(ctx, p.record.ID, "commit")
	if err != nil {
		return err
	}
	defer unlock()
	had, err := p.snapshots() // again, now that no other command works on them
	if err != nil {
		return err
	}
	if err := e.dropAbandoned(ctx, p, had); err != nil {
		return err
	}
	return e.sweepFrozen()
}

// abandonedSnapshots are the leftovers of killed forks.
func (e *Engine) abandonedSnapshots(records []*sandbox.Sandbox) []Leftover {
	var found []Leftover
	for _, record := range records {
		had, err := e.place(record, nil, nil).snapshots()
		if err != nil || !slices.ContainsFunc(had, leftByFork) {
			continue // one that cannot be read is no leftover
		}
		found = append(found, Leftover{What: "a snapshot that an interrupted fork left", Where: record.Name + " of " + record.Repository,
			fix: func(ctx context.Context) error {
				p, err := e.find(ctx, record.Repository, record.Name)
				if err != nil {
					return err
				}
				defer e.tell(p)
				return e.clearAbandoned(ctx, p)
			}})
	}
	return found
}
