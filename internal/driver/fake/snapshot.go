package fake

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
)

// saved is a snapshot: copies of what the sandbox had written by then.
type saved struct {
	driver.Snapshot
	upper, home tree
	deleted     pathSet
	place       *place // for its processes; nil if none ran
}

// tree is the content of a directory by relative name; directories are implied.
type tree map[string][]byte

// snapshots is what the fake declares: each of the pretending defects declares
// less, and yet does it.
func (d Driver) snapshots() driver.Snapshots {
	if d.options.Minimal || d.has(PretendsToRevert) || d.has(PretendsToList) {
		return driver.Snapshots{}
	}
	return driver.Snapshots{Freeze: true, Live: !d.has(PretendsToFreeze), Memory: !d.has(PretendsToRestore)}
}

// Snapshot implements driver.Snapshotter.
func (d Driver) Snapshot(_ context.Context, lease driver.Lease, label string) (driver.Snapshot, error) {
	if !d.snapshots().Freeze {
		return driver.Snapshot{}, driver.ErrUnsupported
	}
	m := d.machine
	m.mu.Lock()
	defer m.mu.Unlock()
	spec := m.known[lease.SandboxID]
	one := saved{deleted: maps.Clone(m.deleted[spec.Workspace.Upper])}
	if p, err := d.find(lease); err == nil {
		one.place, one.Memory = p, d.snapshots().Memory
	}
	if one.place != nil && !d.snapshots().Live && !d.has(PretendsToFreeze) {
		return driver.Snapshot{}, driver.ErrHeld
	}
	var err error
	if one.upper, err = readTree(d.upperOf(spec)); err == nil {
		one.home, err = readTree(filepath.Join(spec.StateDir, "home"))
	}
	if err != nil {
		return driver.Snapshot{}, mountFailed(err)
	}
	if one.place != nil && d.has(TearsRunningSnapshots) {
		one.upper = tree{}
	}
	m.serial++
	one.ID, one.Label, one.CreatedAt = strconv.Itoa(m.serial), label, time.Now()
	one.Layers = spec.Workspace.Layers
	m.saved[lease.SandboxID] = append(m.saved[lease.SandboxID], one)
	return one.Snapshot, nil
}

// Snapshots implements driver.Snapshotter.
func (d Driver) Snapshots(_ context.Context, lease driver.Lease) ([]driver.Snapshot, error) {
	if !d.snapshots().Freeze {
		return nil, d.refuse(PretendsToList)
	}
	d.machine.mu.Lock()
	defer d.machine.mu.Unlock()
	var all []driver.Snapshot
	for _, one := range d.machine.saved[lease.SandboxID] {
		all = append(all, one.Snapshot)
	}
	if d.has(ForgetsSnapshots) {
		all = all[:min(len(all), 1)]
	}
	return all, nil
}

// lookUp returns the snapshot with that id. The caller holds the machine.
func (d Driver) lookUp(sandboxID, id string) (saved, error) {
	all := d.machine.saved[sandboxID]
	at := slices.IndexFunc(all, func(one saved) bool { return one.ID == id })
	if at < 0 {
		return saved{}, driver.ErrNoSnapshot
	}
	return all[at], nil
}

// Revert implements driver.Snapshotter.
func (d Driver) Revert(_ context.Context, lease driver.Lease, id string) error {
	if !d.snapshots().Freeze {
		return d.refuse(PretendsToRevert)
	}
	m := d.machine
	m.mu.Lock()
	defer m.mu.Unlock()
	one, err := d.lookUp(lease.SandboxID, id)
	if err != nil || d.has(RevertsNothing) && one.place == nil {
		return err
	}
	if err := d.putBack(one, m.known[lease.SandboxID]); err != nil {
		return err
	}
	if one.place != nil && (one.Memory && !d.has(RevertsWithoutProcesses) || d.has(PretendsToRestore)) {
		if p, _ := d.find(lease); p == nil || !p.running() {
			again := d.newPlace(one.place.spec, one.place.serial)
			again.started = one.place.started
			m.places[lease.SandboxID] = again
		}
	}
	return nil
}

// DeleteSnapshot implements driver.Snapshotter.
func (d Driver) DeleteSnapshot(_ context.Context, lease driver.Lease, id string) error {
	if !d.snapshots().Freeze {
		return d.refuse(PretendsToList)
	}
	m := d.machine
	m.mu.Lock()
	defer m.mu.Unlock()
	m.saved[lease.SandboxID] = slices.DeleteFunc(m.saved[lease.SandboxID], func(one saved) bool { return one.ID == id })
	return nil
}

// Fork implements driver.Snapshotter.
func (d Driver) Fork(_ context.Context, from driver.Lease, id string, to driver.Lease) ([]string, error) {
	if !d.Capabilities().Fork {
		return nil, d.refuse(PretendsToFork)
	}
	d.machine.mu.Lock()
	defer d.machine.mu.Unlock()
	one, err := d.lookUp(from.SandboxID, id)
	if err != nil {
		return nil, err
	}
	origin := d.machine.known[from.SandboxID]
	spec := driver.Spec{StateDir: to.StateDir, Workspace: driver.Workspace{
		Layers: one.Layers, Upper: filepath.Join(to.StateDir, filepath.Base(origin.Workspace.Upper)),
	}}
	if err := d.putBack(one, spec); err != nil {
		return nil, err
	}
	if d.has(ForksIntoOne) {
		err := os.RemoveAll(spec.Workspace.Upper)
		if err == nil {
			err = os.Symlink(origin.Workspace.Upper, spec.Workspace.Upper)
		}
		if err != nil {
			return nil, mountFailed(err)
		}
	}
	return one.Layers, nil
}

// putBack makes the directories of spec what they were. The caller holds the
// machine.
func (d Driver) putBack(one saved, spec driver.Spec) error {
	for root, content := range map[string]tree{d.upperOf(spec): one.upper, filepath.Join(spec.StateDir, "home"): one.home} {
		if err := writeTree(root, content); err != nil {
			return mountFailed(err)
		}
	}
	deleted := pathSet{}
	maps.Copy(deleted, one.deleted)
	d.machine.deleted[spec.Workspace.Upper] = deleted
	return nil
}

func readTree(root string) (tree, error) {
	found := tree{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && path == root {
			return nil // nothing was ever written
		}
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err == nil {
			found[name], err = os.ReadFile(path)
		}
		return err
	})
	return found, err
}

func writeTree(root string, content tree) error {
	if err := os.RemoveAll(root); err != nil {
		return err
	}
	if err := os.MkdirAll(root, 0o755); err != nil {
		return err
	}
	for name, data := range content {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
