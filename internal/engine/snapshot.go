package engine

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/frozen"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/keeper"
	"github.com/litterbox-sandbox/litterbox/internal/redact"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/seal"
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
	Bytes     int64                `json:"bytes"`      // of the layers that it stands on, which others may stand on too
	ID        string               `json:"id"`
}

// maxLabel bounds the label of a snapshot, in bytes.
const maxLabel = 200

// TakeSnapshot keeps all files of a sandbox as they are at this moment: what is
// tracked, untracked and ignored, HOME, and the agent's own git. What runs goes
// on, and notices nothing longer than a pause.
func (e *Engine) TakeSnapshot(ctx context.Context, dir, name, label string) (taken Snapshot, err error) {
	label = redact.Tokens(strings.TrimSpace(label), callerOf(ctx).Secrets()...)
	if err := checkLabel(name, label); err != nil {
		return Snapshot{}, err
	}
	p, err := e.find(ctx, dir, name)
	if err != nil {
		return Snapshot{}, err
	}
	defer e.tell(p)
	ctx, call, err := e.record(ctx, "snapshot", dir, name, map[string]any{"label": label})
	if err != nil {
		return Snapshot{}, err
	}
	defer func() { err = call.end(taken.Commit, nil, err) }()
	made, err := e.snapshot(ctx, p, sandbox.SnapshotAsked, label)
	if err != nil {
		return Snapshot{}, err
	}
	return p.shown(made), nil
}

// checkLabel refuses what could be taken for a snapshot's short name or for an
// iteration, and what no listing can show.
func checkLabel(name, label string) error {
	_, number := sandbox.SnapshotNumber(label)
	_, err := strconv.Atoi(label)
	bad := number || err == nil || len(label) > maxLabel || strings.ContainsFunc(label, func(r rune) bool { return !unicode.IsPrint(r) })
	if bad {
		return fault.New(fault.Invalid, "cannot call a snapshot %q: a label is text of up to %d bytes, and no number", label, maxLabel).
			WithHint("litterbox snapshot %s before-the-refactoring", name)
	}
	return nil
}

// snapshot commits what lies uncommitted, and then keeps all files.
func (e *Engine) snapshot(ctx context.Context, p *place, kind sandbox.SnapshotKind, label string) (*sandbox.Snapshot, error) {
	if !p.driver.Capabilities().Snapshots.Freeze {
		return nil, fault.New(fault.Unsupported, "cannot take a snapshot of sandbox %q: the driver %q has none", p.record.Name, p.record.Driver)
	}
	if p.far() { // what this machine has of its files is as old as its beginning
		return nil, fault.New(fault.Unsupported, "cannot take a snapshot of sandbox %q: its files are in its machine", p.record.Name)
	}
	if err := e.settle(ctx, p); err != nil {
		return nil, err
	}
	return e.keep(ctx, p, kind, label)
}

// keep takes the snapshot itself. A kill between the driver's part and the
// record leaves a snapshot that no record speaks of, which the next one drops.
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
	if err := e.dropUnrecorded(ctx, p, had); err != nil {
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

// recordSnapshot writes what belongs to a snapshot; its record comes last.
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

// still keeps everybody else from committing, starting and stopping, and says
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
	_ = stream.Close() // only asked whether somebody is there
	return true
}

// freeze has the driver take the snapshot: through the keeper, which holds
// what runs still, or directly.
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

// snapshots reads the records, oldest first. A damaged one is an error: what it
// speaks of is still there.
func (p *place) snapshots() ([]*sandbox.Snapshot, error) {
	names, err := filepath.Glob(p.path(snapshotsDir, "*.json"))
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "cannot list snapshots")
	}
	var all []*sandbox.Snapshot
	for _, name := range names {
		if strings.HasSuffix(name, "-"+store.ServicesFile) {
			continue
		}
		one := &sandbox.Snapshot{}
		found, err := p.store.Record(p.record.ID, filepath.Join(snapshotsDir, filepath.Base(name)), one)
		if errors.Is(err, seal.ErrDamaged) {
			p.note("the record of a snapshot is damaged, and nothing can return to it: " + name)
			continue
		}
		if err != nil {
			return nil, err
		}
		if found {
			all = append(all, one)
		}
	}
	slices.SortFunc(all, func(a, b *sandbox.Snapshot) int { return cmp.Compare(a.Number, b.Number) })
	return all, nil
}

// dropUnrecorded has the driver forget what a cut-off snapshot has left. One
// whose record is damaged stays.
func (e *Engine) dropUnrecorded(ctx context.Context, p *place, had []*sandbox.Snapshot) error {
	lease := p.anyLease()
	kept, err := p.driver.Snapshots(ctx, lease)
	if err != nil {
		return err
	}
	for _, one := range kept {
		known := slices.ContainsFunc(had, func(s *sandbox.Snapshot) bool { return s.ID == one.ID })
		if known || fileExists(p.path(snapshotsDir, one.ID+".json")) {
			continue
		}
		if err := p.driver.DeleteSnapshot(ctx, lease, one.ID); err != nil {
			return err
		}
	}
	return nil
}

// anyLease is the recorded lease, or what stands for it before the first start.
func (p *place) anyLease() driver.Lease {
	if lease, err := p.store.Lease(p.record.ID); err == nil && lease != nil {
		return p.driverLease(lease)
	}
	return leaseOf(p)
}

// shown is a snapshot for a frontend.
func (p *place) shown(s *sandbox.Snapshot) Snapshot {
	shown := Snapshot{
		Name: s.Name(), Label: s.Label, Kind: s.Kind, CreatedAt: s.CreatedAt, Iteration: s.Iteration, Commit: s.Commit,
		Policy: s.Policy, Image: s.Sandbox.Image, ID: s.ID,
	}
	if r, err := frozen.Read(p.dir); err == nil {
		at := slices.IndexFunc(r.Kept, func(k frozen.Kept) bool { return k.ID == s.ID })
		if at >= 0 {
			seen := inodes{}
			for _, layer := range r.Kept[at].Stack {
				shown.Bytes += seen.size(filepath.Join(frozen.Store(p.dir), layer))
			}
		}
	}
	return shown
}

// Snapshots lists the snapshots of a sandbox, oldest first.
func (e *Engine) Snapshots(ctx context.Context, dir, name string) ([]Snapshot, error) {
	p, err := e.find(ctx, dir, name)
	if err != nil {
		return nil, err
	}
	defer e.tell(p)
	all, err := p.snapshots()
	if err != nil {
		return nil, err
	}
	found := []Snapshot{}
	for _, one := range all {
		found = append(found, p.shown(one))
	}
	return found, nil
}

// findSnapshot finds a snapshot by its short name, its id or its label; of
// several with one label the newest.
func (p *place) findSnapshot(name string) (*sandbox.Snapshot, error) {
	all, err := p.snapshots()
	if err != nil {
		return nil, err
	}
	number, _ := sandbox.SnapshotNumber(name)
	for _, one := range slices.Backward(all) {
		if one.Number == number || one.ID == name || one.Label == name && name != "" {
			return one, nil
		}
	}
	return nil, fault.New(fault.NotFound, "sandbox %q has no snapshot %q", p.record.Name, name).
		WithHint("litterbox snapshots %s", p.record.Name)
}

// DeleteSnapshots deletes snapshots for good. What the sandbox, another
// snapshot or a fork stands on stays.
func (e *Engine) DeleteSnapshots(ctx context.Context, dir, name string, which []string) (gone []Snapshot, err error) {
	p, err := e.find(ctx, dir, name)
	if err != nil {
		return nil, err
	}
	defer e.tell(p)
	ctx, call, err := e.record(ctx, "snapshot delete", dir, name, map[string]any{"snapshots": which})
	if err != nil {
		return nil, err
	}
	defer func() { err = call.end("", nil, err) }()
	unlock, err := p.store.Lock(ctx, p.record.ID, "commit")
	if err != nil {
		return nil, err
	}
	defer unlock()
	var going []*sandbox.Snapshot
	for _, one := range which {
		found, err := p.findSnapshot(one)
		if err != nil {
			return nil, err
		}
		going = append(going, found)
	}
	for _, one := range going {
		shown := p.shown(one)
		if err := e.dropSnapshot(ctx, p, one); err != nil {
			return gone, err
		}
		gone = append(gone, shown)
	}
	return gone, e.sweepFrozen()
}

// dropSnapshot deletes the record first: what is left then is dropped with the
// next snapshot, or swept.
func (e *Engine) dropSnapshot(ctx context.Context, p *place, one *sandbox.Snapshot) error {
	err := os.Remove(p.path(snapshotsDir, one.ID+".json"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fault.Wrap(fault.Unavailable, err, "cannot delete the snapshot %s", one.Name())
	}
	if err := p.driver.DeleteSnapshot(ctx, p.anyLease(), one.ID); err != nil {
		return err
	}
	for _, file := range []string{keeper.DeltaFile, store.ServicesFile} {
		if err := os.Remove(p.snapshotFile(one.ID, file)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fault.Wrap(fault.Unavailable, err, "cannot delete the snapshot %s", one.Name())
		}
	}
	return p.repo.UpdateRefs(ctx, "cannot release the commit of", p.record.Branch, "delete "+p.snapshotRef(one)+"\x00\x00")
}

// frozenHolders lists the directories of all sandboxes that may stand on frozen
// layers. Deleted ones come before and after those that live: one that is just
// being deleted or restored is in one of the lists.
func (e *Engine) frozenHolders() ([]string, error) {
	var dirs []string
	for _, s := range []*store.Store{e.Store.Trash(), e.Store, e.Store.Trash()} {
		parent := filepath.Dir(s.SandboxDir("x"))
		entries, err := os.ReadDir(parent)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fault.Wrap(fault.Unavailable, err, "cannot list %q", parent)
		}
		for _, entry := range entries {
			if dir := filepath.Join(parent, entry.Name()); !slices.Contains(dirs, dir) {
				dirs = append(dirs, dir)
			}
		}
	}
	return dirs, nil
}

// frozenStore is where the frozen layers of all sandboxes lie.
func (e *Engine) frozenStore() string { return frozen.Store(e.Store.SandboxDir("x")) }

// sweepFrozen removes the frozen layers that no sandbox and no snapshot needs.
// Where a sandbox is just moving into the trash or out of it, nothing goes yet.
func (e *Engine) sweepFrozen() error {
	err := frozen.Sweep(e.frozenStore(), e.frozenHolders)
	if fault.KindOf(err) == fault.Conflict {
		return nil
	}
	return err
}

// frozenSize is what the frozen layers take that some sandboxes need, or all.
func (e *Engine) frozenSize(infos []Info, all bool) (int64, error) {
	counted := inodes{}
	if all {
		return counted.size(e.frozenStore()), nil
	}
	var total int64
	for _, info := range infos {
		names, err := frozen.Needed(e.Store.SandboxDir(info.ID))
		if err != nil {
			return 0, err
		}
		for _, name := range names {
			total += counted.size(filepath.Join(e.frozenStore(), name))
		}
	}
	return total, nil
}
