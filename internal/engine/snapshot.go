package engine

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/frozen"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/keeper"
	"github.com/litterbox-sandbox/litterbox/internal/process"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/store"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// Snapshot is one snapshot as listings show it. The JSON fields are pinned by a
// golden file; add, never rename.
type Snapshot struct {
	Name      string               `json:"name"` // s3
	Label     string               `json:"label"`
	Kind      sandbox.SnapshotKind `json:"kind"`
	CreatedAt time.Time            `json:"created_at"`
	Iteration int                  `json:"iteration"`
	Commit    string               `json:"commit"`
	Policy    int                  `json:"policy_revision"`
	Image     *sandbox.Image       `json:"base_image"` // nil: the host's own userland
	Bytes     int64                `json:"bytes"`      // of the layers that it uses, which others may use too
	ID        string               `json:"id"`
}

// maxLabel bounds the label of a snapshot, in bytes.
const maxLabel = 200

// TakeSnapshot keeps all files of a sandbox as they are at this moment: tracked,
// untracked and ignored ones, HOME, and the agent's own git. Programs go on after
// at most a pause. The result has no size, which would take longer than the
// snapshot: Snapshots has it.
func (e *Engine) TakeSnapshot(ctx context.Context, dir, name, label string) (taken Snapshot, err error) {
	label = e.secretsOf(ctx).Tokens(strings.TrimSpace(label))
	if err := checkLabel(name, label); err != nil {
		return Snapshot{}, err
	}
	p, err := e.find(ctx, dir, name)
	if err != nil {
		return Snapshot{}, err
	}
	defer e.tell(p)
	ctx, call, err := e.recordIn(ctx, p, "snapshot", map[string]any{"label": label})
	if err != nil {
		return Snapshot{}, err
	}
	defer func() { err = call.end(taken.Commit, nil, err) }()
	had, err := p.snapshots()
	if err == nil {
		err = freeLabel(p.record.Name, label, had)
	}
	if err != nil {
		return Snapshot{}, err
	}
	made, err := e.snapshot(ctx, p, sandbox.SnapshotAsked, label)
	if err != nil {
		return Snapshot{}, err
	}
	return unsized(made), nil
}

// checkLabel refuses labels that could be taken for a snapshot's short name or for
// an iteration, and those that no listing can show.
func checkLabel(name, label string) error {
	_, number := sandbox.SnapshotNumber(label)
	_, err := strconv.Atoi(label)
	bad := number || err == nil || len(label) > maxLabel || strings.ContainsFunc(label, func(r rune) bool { return !unicode.IsPrint(r) })
	if bad {
		return fault.New(fault.Invalid, "cannot call a snapshot %q: a label is text of up to %d bytes, and not a number", label, maxLabel).
			WithHint("litterbox snapshot %s before-the-refactoring", name)
	}
	return nil
}

// freeLabel refuses a label that a snapshot of the sandbox has: with two, it would
// name neither.
func freeLabel(name, label string, had []*sandbox.Snapshot) error {
	for _, one := range had {
		if label != "" && one.Label == label {
			return fault.New(fault.AlreadyExists, "cannot call a snapshot %q: snapshot %s of sandbox %q has this label", label, one.Name(), name).
				WithHint("litterbox snapshot %s ANOTHER-LABEL", name)
		}
	}
	return nil
}

// snapshot commits uncommitted changes, and then keeps all files.
func (e *Engine) snapshot(ctx context.Context, p *place, kind sandbox.SnapshotKind, label string) (*sandbox.Snapshot, error) {
	if !p.driver.Capabilities().Snapshots.Freeze {
		return nil, fault.New(fault.Unsupported, "cannot take a snapshot of sandbox %q: the driver %q has none", p.record.Name, p.record.Driver)
	}
	if p.far() && p.driver.Capabilities().Snapshots.Memory && e.pausedByUser(ctx, p) {
		// Its machine stands still and lists nothing; all of it is in the snapshot.
		p.note("sandbox " + p.record.Name + " is paused: what is uncommitted in it is in the snapshot and in no commit")
	} else if err := e.settle(ctx, p); err != nil {
		return nil, err
	}
	defer e.busy("keeping the files of " + p.record.Name)()
	return e.keep(ctx, p, kind, label)
}

// keep takes the snapshot itself. A kill between the driver's part and the record
// leaves a snapshot without a record, which the next one drops.
func (e *Engine) keep(ctx context.Context, p *place, kind sandbox.SnapshotKind, label string) (*sandbox.Snapshot, error) {
	unlock, live, err := e.still(ctx, p)
	if err != nil {
		return nil, err
	}
	defer unlock()
	fresh, err := p.store.Sandbox(p.record.ID)
	if err != nil {
		return nil, err
	}
	*p.record = *fresh
	had, err := p.snapshots()
	if err != nil {
		return nil, err
	}
	if kind == sandbox.SnapshotAsked { // again, now that no other command takes one
		if err := freeLabel(p.record.Name, label, had); err != nil {
			return nil, err
		}
	}
	if err := e.dropUnrecorded(ctx, p, had); err != nil {
		return nil, err
	}
	if err := e.dropAbandoned(ctx, p, had); err != nil {
		return nil, err
	}
	taken, err := e.freeze(ctx, p, live, label)
	if err != nil {
		return nil, err
	}
	made := &sandbox.Snapshot{
		Version: sandbox.RecordVersion, Number: 1, ID: taken.ID, Label: label, Kind: kind, CreatedAt: taken.CreatedAt,
		Iteration: p.record.Iterations, Commit: cmp.Or(p.record.Last, p.record.Base), Sandbox: *p.record,
	}
	if kind == sandbox.SnapshotFork {
		if made.Holder, err = process.Identify(os.Getpid()); err != nil {
			return nil, fault.Wrap(fault.Internal, err, "cannot identify this process")
		}
	}
	if taken.Memory {
		if made.Lease, err = p.store.Lease(p.record.ID); err != nil {
			return nil, err
		}
	}
	for _, one := range had {
		made.Number = max(made.Number, one.Number+1)
	}
	if policy, err := e.policy(p); err == nil {
		made.Policy = policy.Revision
	}
	if err := e.recordSnapshot(ctx, p, made); err != nil {
		return nil, err
	}
	e.emit(ctx, p, event(sandbox.EventSnapshot, 0, "snapshot", made.Name(), "label", made.Label, "kind", string(made.Kind), "commit", made.Commit))
	return made, nil
}

// recordSnapshot writes the parts of a snapshot; its record comes last.
func (e *Engine) recordSnapshot(ctx context.Context, p *place, made *sandbox.Snapshot) error {
	if err := os.MkdirAll(p.path(snapshotsDir), 0o700); err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot record a snapshot")
	}
	for _, file := range []string{keeper.DeltaFile, store.ServicesFile} {
		if err := copyRecord(p.path(file), p.snapshotFile(made.ID, file)); err != nil {
			return err
		}
	}
	// The branch may be moved or deleted; the commit stays.
	if err := p.repo.UpdateRefs(ctx, "cannot keep the commit of", p.record.Branch, "update "+p.snapshotRef(made)+"\x00"+made.Commit+"\x00\x00"); err != nil {
		return err
	}
	return p.store.SaveRecord(p.record.ID, snapshotRecord(made.ID), made)
}

// snapshotRecord is the record of a snapshot, below the sandbox's directory.
func snapshotRecord(id string) string { return filepath.Join(snapshotsDir, id+".json") }

// snapshotsDir holds the records of a sandbox's snapshots.
const snapshotsDir = "snapshots"

func (p *place) snapshotFile(id, file string) string { return p.path(snapshotsDir, id+"-"+file) }

func (p *place) snapshotRef(s *sandbox.Snapshot) string {
	return git.HistoryRefs + p.record.ID + "/snapshot-" + s.ID
}

// copyRecord copies a small file in one step; none is copied as none.
func copyRecord(from, to string) error {
	data, err := os.ReadFile(from)
	if errors.Is(err, fs.ErrNotExist) {
		err = os.Remove(to)
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	} else if err == nil {
		temp := filepath.Join(filepath.Dir(to), "."+filepath.Base(to))
		if err = os.WriteFile(temp, data, 0o600); err == nil {
			err = os.Rename(temp, to)
		}
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot copy %q", from)
	}
	return nil
}

// still keeps other commands from committing, starting and stopping, and reports
// whether the sandbox runs with a keeper that can be asked.
func (e *Engine) still(ctx context.Context, p *place) (unlock func(), live bool, err error) {
	if state, _ := e.state(ctx, p.record); state == sandbox.Running && !p.reachable(ctx) {
		stream, err := e.running(ctx, p, false) // its keeper is gone
		if err != nil {
			return nil, false, err
		}
		if err := stream.Close(); err != nil {
			return nil, false, err
		}
	}
	unlock, err = p.held(ctx)
	if err != nil {
		return nil, false, err
	}
	return unlock, p.reachable(ctx), nil
}

// held takes the locks of the lease and of commits.
func (p *place) held(ctx context.Context) (unlock func(), err error) {
	unlockLease, err := p.store.Lock(ctx, p.record.ID, "lease")
	if err != nil {
		return nil, err
	}
	unlockCommit, err := p.store.Lock(ctx, p.record.ID, "commit")
	if err != nil {
		unlockLease()
		return nil, err
	}
	return func() { unlockCommit(); unlockLease() }, nil
}

// reachable reports whether the sandbox's keeper answers, for a paused one too.
func (p *place) reachable(ctx context.Context) bool {
	stream, err := p.dial(ctx)
	if err != nil {
		return false
	}
	_ = stream.Close() // only asked whether it answers
	return true
}

// freeze has the driver take the snapshot: through the keeper, which pauses what
// runs, or directly.
func (e *Engine) freeze(ctx context.Context, p *place, live bool, label string) (taken driver.Snapshot, err error) {
	if live {
		stream, err := p.dial(ctx)
		if err != nil {
			return taken, err
		}
		defer stream.Close()
		err = wire.AskFor(ctx, stream, wire.Request{Op: keeper.OpSnapshot, Reason: label}, &taken)
		return taken, err
	}
	lease, unlock, err := e.stopped(ctx, p)
	if err != nil {
		return taken, err
	}
	defer unlock()
	return p.driver.Snapshot(ctx, lease, label)
}

// stopped makes sure that nothing of a sandbox runs, and that no keeper works on
// it. The caller holds the lock of its lease.
func (e *Engine) stopped(ctx context.Context, p *place) (driver.Lease, func(), error) {
	none := leaseOf(p)
	lease, err := e.lease(ctx, p)
	if err != nil {
		return none, nil, err
	}
	unlock, err := e.alone(ctx, p, lease)
	if err != nil {
		return none, nil, err
	}
	if lease == nil {
		done, err := p.driver.Recover(ctx, none)
		p.note(done...)
		if err != nil {
			unlock()
			return none, nil, err
		}
		return none, unlock, nil
	}
	// A guest that lives without a keeper may be paused: the driver tells.
	return p.driverLease(lease), unlock, nil
}

// frozenBelow are the layers of what the sandbox wrote before, topmost first.
func (p *place) frozenBelow() ([]string, error) {
	if p.copied() || p.far() {
		return nil, nil
	}
	r, err := frozen.Read(p.dir)
	if err != nil {
		return nil, err
	}
	return frozen.LayersOf(p.dir, r.Stack).Upper, nil
}
