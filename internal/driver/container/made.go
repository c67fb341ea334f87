package container

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
	"github.com/litterbox-sandbox/litterbox/internal/seal"
)

// A record of each container lies beside the sandboxes, too: it says which engines
// hold something of a state directory even when no sandbox does any more.
func engineDir(root string) string { return filepath.Join(root, "engines") }

const engineSuffix = ".json"

// remember writes the record, before there is anything to find.
func (r Record) remember() error {
	dir := engineDir(r.State)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return driver.Seal(err, "cannot record which engine has the container")
	}
	data, err := seal.Encode(r)
	if err != nil {
		return err
	}
	temp, err := os.CreateTemp(dir, ".new-*") // 0600
	if err != nil {
		return driver.Seal(err, "cannot record which engine has the container")
	}
	_, err = temp.Write(data)
	if err = errors.Join(err, temp.Close()); err == nil {
		err = os.Rename(temp.Name(), filepath.Join(dir, r.Name+engineSuffix))
	}
	if err != nil {
		return errors.Join(driver.Seal(err, "cannot record which engine has the container"), os.Remove(temp.Name()))
	}
	return nil
}

// remembered returns the records of an engine's kind.
func remembered(root string, kind Kind) ([]Record, error) {
	entries, err := os.ReadDir(engineDir(root))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "cannot list which engines have containers")
	}
	var all []Record
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), ".") || !strings.HasSuffix(entry.Name(), engineSuffix) {
			continue
		}
		var r Record
		data, err := os.ReadFile(filepath.Join(engineDir(root), entry.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue // just removed
		}
		if err == nil {
			err = seal.Decode(data, &r)
		}
		if err != nil {
			return nil, fault.Wrap(fault.Internal, err, "cannot read which engine has the container %s", strings.TrimSuffix(entry.Name(), engineSuffix))
		}
		if r.Kind == kind {
			all = append(all, r)
		}
	}
	return all, nil
}

// Inside lists the ids of the sandboxes of a state directory that are in the
// container called name, and the directories of the goldens that are kept there. An
// unreadable record is an error: it may name any container.
func Inside(root, name string) (sandboxes, goldens []string, err error) {
	ofSandboxes, err := driver.Records(root, File)
	if err != nil {
		return nil, nil, err
	}
	ofGoldens, err := filepath.Glob(filepath.Join(root, "golden", "*", File))
	if err != nil {
		return nil, nil, err
	}
	if sandboxes, err = naming(ofSandboxes, name); err == nil {
		goldens, err = naming(ofGoldens, name)
	}
	return sandboxes, goldens, err
}

// naming lists the directories of those records that name a container.
func naming(records []string, name string) ([]string, error) {
	var found []string
	for _, path := range records {
		r, err := readRecord(filepath.Dir(path))
		if errors.Is(err, fs.ErrNotExist) {
			continue // just deleted
		}
		if err != nil {
			return nil, err
		}
		if r.Name == name {
			found = append(found, filepath.Base(filepath.Dir(path)))
		}
	}
	return found, nil
}

// Made implements driver.Maker. Each engine that has made one is asked, also when
// it is not the engine of new sandboxes.
func (d *Driver) Made(ctx context.Context, root string) ([]driver.Made, error) {
	known, err := remembered(root, d.kind)
	if err != nil {
		return nil, err
	}
	var all []driver.Made
	var asked []string
	for _, r := range known {
		if slices.Contains(asked, r.Address) {
			continue
		}
		asked = append(asked, r.Address)
		reply, err := d.engine.Do(ctx, Order{Op: OpList, Kind: d.kind, Address: r.Address, State: root}, nil)
		if ctx.Err() != nil {
			return nil, fault.Wrap(fault.Canceled, ctx.Err(), "cannot ask %s what it has", d.kind.Title())
		}
		if err != nil {
			all = append(all, unasked(known, r.Address, err)...)
			continue
		}
		for _, one := range reply.Machines {
			if one.State == root { // an engine may answer anything
				all = append(all, driver.Made{Name: one.Name, Image: one.Shown, Engine: r.Address, Running: one.Running, Bytes: one.Bytes})
			}
		}
	}
	for i := range all {
		if all[i].Sandboxes, all[i].Goldens, err = Inside(root, all[i].Name); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(all, func(a, b driver.Made) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

// unasked returns the containers of an engine that does not answer.
func unasked(known []Record, address string, err error) []driver.Made {
	var all []driver.Made
	for _, r := range known {
		if r.Address == address {
			all = append(all, driver.Made{Name: r.Name, Image: r.Shown, Engine: address, Bytes: -1, Trouble: err.Error()})
		}
	}
	return all
}

// Unmake implements driver.Maker.
func (d *Driver) Unmake(ctx context.Context, root, name string) error {
	made, err := d.Made(ctx, root)
	if err != nil {
		return err
	}
	for _, one := range made {
		if one.Name != name {
			continue
		}
		if one.Trouble != "" {
			return fault.New(fault.Unavailable, "cannot remove the container %s: %s", name, one.Trouble)
		}
		r := Record{Version: 1, Kind: d.kind, Address: one.Engine, Name: name, State: root}
		if _, err := d.engine.Do(ctx, Order{Op: OpRemove, Kind: d.kind, Address: one.Engine, Machine: r, State: root}, nil); err != nil {
			return err
		}
	}
	if err := os.Remove(filepath.Join(engineDir(root), name+engineSuffix)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fault.Wrap(fault.Unavailable, err, "cannot forget the container %s", name)
	}
	return nil
}
