package engine

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/frozen"
	"github.com/litterbox-sandbox/litterbox/internal/keeper"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/seal"
	"github.com/litterbox-sandbox/litterbox/internal/store"
)

// snapshots reads the records, oldest first. A damaged one is an error: its
// snapshot still exists.
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

// dropUnrecorded has the driver forget the leftovers of a cut-off snapshot. A
// snapshot whose record is damaged stays.
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

// anyLease is the recorded lease, or a stand-in before the first start.
func (p *place) anyLease() driver.Lease {
	if lease, err := p.store.Lease(p.record.ID); err == nil && lease != nil {
		return p.driverLease(lease)
	}
	return leaseOf(p)
}

// unsized is a snapshot for a frontend without its size.
func unsized(s *sandbox.Snapshot) Snapshot {
	return Snapshot{
		Name: s.Name(), Label: s.Label, Kind: s.Kind, CreatedAt: s.CreatedAt, Iteration: s.Iteration, Commit: s.Commit,
		Policy: s.Policy, Image: s.Sandbox.Image, ID: s.ID,
	}
}

// shown is a snapshot for a frontend. Its size takes a look at every file.
func (p *place) shown(s *sandbox.Snapshot) Snapshot {
	shown := unsized(s)
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
	all = e.withoutAbandoned(ctx, p, all)
	far := map[string]int64{}
	if p.far() && len(all) > 0 {
		kept, err := p.driver.Snapshots(ctx, p.anyLease())
		if err != nil { // they are listed all the same
			p.note("what the snapshots take is not known: " + err.Error())
		}
		for _, one := range kept {
			far[one.ID] = one.Bytes
		}
	}
	found := []Snapshot{}
	for _, one := range all {
		shown := p.shown(one)
		shown.Bytes += far[one.ID]
		found = append(found, shown)
	}
	return found, nil
}

// findSnapshot finds a snapshot by its short name, its id or its label. Labels of
// restores repeat: one of several must be named by its short name.
func (p *place) findSnapshot(name string) (*sandbox.Snapshot, error) {
	all, err := p.snapshots()
	if err != nil {
		return nil, err
	}
	number, short := sandbox.SnapshotNumber(name)
	var labelled []*sandbox.Snapshot
	var names []string
	for _, one := range all {
		if short && one.Number == number || one.ID == name {
			return one, nil
		}
		if one.Label == name && name != "" {
			labelled, names = append(labelled, one), append(names, one.Name())
		}
	}
	switch len(labelled) {
	case 1:
		return labelled[0], nil
	case 0:
	default:
		return nil, fault.New(fault.Conflict, "cannot choose a snapshot of sandbox %q: %s have the label %q", p.record.Name, strings.Join(names, " and "), name).
			WithHint("litterbox snapshots %s", p.record.Name)
	}
	return nil, noSnapshot(p.record.Name, name, all)
}

// DeleteSnapshots deletes snapshots for good. Layers that the sandbox, another
// snapshot or a fork uses stay.
func (e *Engine) DeleteSnapshots(ctx context.Context, dir, name string, which []string) (gone []Snapshot, err error) {
	p, err := e.find(ctx, dir, name)
	if err != nil {
		return nil, err
	}
	defer e.tell(p)
	ctx, call, err := e.recordIn(ctx, p, "snapshot delete", map[string]any{"snapshots": which})
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

// dropSnapshot deletes the record first: the rest is then dropped with the next
// snapshot, or swept. Ref and files are deleted at the same time.
func (e *Engine) dropSnapshot(ctx context.Context, p *place, one *sandbox.Snapshot) error {
	err := os.Remove(p.path(snapshotsDir, one.ID+".json"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fault.Wrap(fault.Unavailable, err, "cannot delete the snapshot %s", one.Name())
	}
	released := make(chan error, 1)
	go func() {
		released <- p.repo.UpdateRefs(ctx, "cannot release the commit of", p.record.Branch, "delete "+p.snapshotRef(one)+"\x00\x00")
	}()
	problems := []error{p.driver.DeleteSnapshot(ctx, p.anyLease(), one.ID)}
	for _, file := range []string{keeper.DeltaFile, store.ServicesFile} {
		if err := os.Remove(p.snapshotFile(one.ID, file)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			problems = append(problems, fault.Wrap(fault.Unavailable, err, "cannot delete the snapshot %s", one.Name()))
		}
	}
	return errors.Join(append(problems, <-released)...)
}
