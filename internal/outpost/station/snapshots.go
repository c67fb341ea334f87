package station

import (
	"context"
	"errors"
	"path/filepath"
	"slices"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/frozen"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/hostile"
	"github.com/litterbox-sandbox/litterbox/internal/outpost"
	"github.com/litterbox-sandbox/litterbox/internal/workspace/local"
)

// The driver of this machine freezes the writes of a place here, beside it. A
// host has the names of snapshots and none of their files.

// kept answers requests about snapshots. It finishes what it has begun even
// when the host is gone: half of a snapshot is of no use.
func (s *Station) kept(ctx context.Context, q outpost.Request) (answer outpost.Answer, err error) {
	ctx = context.WithoutCancel(ctx)
	err = s.locked(ctx, "place-"+q.Place.Sandbox, func() error {
		r, err := s.its(q.Place)
		if err != nil {
			return err
		}
		if len(q.Place.Handle) == 0 {
			q.Place.Handle = r.Handle // the host may have lost it; the files are the same
		}
		lease := s.lease(q.Place)
		switch q.Op {
		case outpost.OpSnapshot:
			one, err := s.Driver.Snapshot(ctx, lease, q.Reason)
			answer.Snapshots = s.worded(lease, []driver.Snapshot{one})
			return err
		case outpost.OpSnapshots:
			all, err := s.Driver.Snapshots(ctx, lease)
			answer.Snapshots = s.worded(lease, all)
			return err
		case outpost.OpRevert:
			return s.Driver.Revert(ctx, lease, q.Snapshot)
		case outpost.OpRelease:
			return errors.Join(s.Driver.DeleteSnapshot(ctx, lease, q.Snapshot), s.sweepFrozen())
		case outpost.OpFork:
			return s.fork(ctx, q, r, lease)
		}
		return nil
	})
	return answer, err
}

// worded returns what a host learns about snapshots: no path of this machine,
// but how much they take here.
func (s *Station) worded(lease driver.Lease, all []driver.Snapshot) []driver.Snapshot {
	r, err := frozen.Read(lease.StateDir)
	if err != nil {
		r = &frozen.Record{} // then only their sizes are unknown
	}
	for i := range all {
		all[i].Layers = nil
		seen := hostile.Counted{}
		for _, one := range r.Kept {
			if one.ID == all[i].ID {
				for _, name := range one.Stack {
					all[i].Bytes += seen.Size(filepath.Join(frozen.Store(lease.StateDir), name))
				}
			}
		}
	}
	return all
}

// fork makes the files of another place from a snapshot. They are there whole
// or not at all, like those of begin.
func (s *Station) fork(ctx context.Context, q outpost.Request, from record, lease driver.Lease) error {
	to := q.To
	if !outpost.IsName(to.Sandbox) || to.Identity == "" || to.Sandbox == q.Place.Sandbox {
		return fault.New(fault.Invalid, "cannot fork into %q", to.Sandbox)
	}
	return s.locked(ctx, "place-"+to.Sandbox, func() error {
		free, err := s.free(to)
		if err != nil || !free {
			return err
		}
		building, err := s.building("sandboxes")
		if err != nil {
			return err
		}
		err = s.forkInto(ctx, q, from, lease, building)
		if err != nil {
			return errors.Join(err, hostile.Remove(building))
		}
		return nil
	})
}

func (s *Station) forkInto(ctx context.Context, q outpost.Request, from record, lease driver.Lease, building string) error {
	made := driver.Lease{ID: q.To.Sandbox, SandboxID: q.To.Sandbox, StateDir: building}
	if _, err := s.Driver.Fork(ctx, lease, q.Snapshot, made); err != nil {
		return err
	}
	return s.settleIn(building, q.To, record{Identity: q.To.Identity, Layers: slices.Clone(from.Layers), Whole: from.Whole})
}

// rebranch moves the git inside a fork, which has not run, to a branch of its
// own.
func (s *Station) rebranch(ctx context.Context, q outpost.Request) error {
	if len(q.Keys) != 2 {
		return fault.New(fault.Invalid, "cannot give a fork a branch without two names")
	}
	return s.locked(ctx, "place-"+q.Place.Sandbox, func() error {
		r, err := s.its(q.Place)
		if err != nil {
			return err
		}
		if len(r.Handle) > 0 {
			return fault.New(fault.Conflict, "cannot change the branch of a sandbox that has run")
		}
		own := s.Driver.Ownership(q.Place.Sandbox)
		return local.Files{Dir: s.dir(q.Place.Sandbox), Copy: r.Whole}.Rebranch(q.Keys[0], q.Keys[1], git.Owner{UID: own.UpperUID, GID: own.UpperGID, Chown: own.UpperUID >= 0})
	})
}

// holders lists the directories of places and goldens, which name the frozen layers
// that they need. A place that begins with a golden is listed no later than that.
func (s *Station) holders() ([]string, error) {
	dirs, err := s.goldenDirs()
	if err != nil {
		return nil, err
	}
	ids, err := s.ids()
	for _, id := range ids {
		dirs = append(dirs, s.dir(id))
	}
	return dirs, err
}

// sweepFrozen removes the frozen layers that no place needs. While one is just
// moving, it removes nothing yet.
func (s *Station) sweepFrozen() error {
	err := frozen.Sweep(s.frozen(), s.holders)
	if fault.KindOf(err) == fault.Conflict {
		return nil
	}
	return err
}

func (s *Station) frozen() string { return frozen.Store(s.dir("x")) }

// below returns the layers of a place's earlier writes.
func (s *Station) below(id string) (frozen.Layers, []string, error) {
	r, err := frozen.Read(s.dir(id))
	if err != nil {
		return frozen.Layers{}, nil, err
	}
	return frozen.LayersOf(s.dir(id), r.Stack), r.Stack, nil
}
