package engine

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/frozen"
	"github.com/litterbox-sandbox/litterbox/internal/hostile"
)

// A golden of sandboxes in another machine has its record here and its files there.

// goldenKeeper is the part of the sandbox's driver that keeps goldens in its machine;
// nil where goldens are layers of this one, or where there are none.
func (p *place) goldenKeeper() driver.GoldenKeeper {
	keeper, can := p.driver.(driver.GoldenKeeper)
	if !can || !p.far() || !p.driver.Capabilities().Goldens {
		return nil
	}
	return keeper
}

// goldenDriver is a file in the directory of a golden that another machine keeps, with
// the name of the driver. It is written before there is anything to keep.
const goldenDriver = "driver"

// keepFar has the machine keep the golden of a sandbox that has stopped. Its paths are
// those that git ignores.
func (e *Engine) keepFar(ctx context.Context, p *place, g *golden, ignored []string) error {
	keeper := p.goldenKeeper()
	if err := noteKeeper(g, p.record.Driver); err != nil {
		return err
	}
	kept, err := keeper.KeepGolden(ctx, p.anyLease(), goldenLease(g), ignored)
	if err != nil {
		return err
	}
	g.Layer, g.Bytes = kept.ID, kept.Bytes
	g.Placeholders, err = e.searchSecrets(ctx, p, func(texts [][]byte) ([]frozen.Found, error) {
		if len(texts) == 0 { // then no file has to come here
			return nil, nil
		}
		archive, err := keeper.ReadGolden(ctx, goldenLease(g), g.Layer)
		if err != nil {
			return nil, err
		}
		found, err := frozen.SearchArchive(archive, texts)
		return found, errors.Join(err, archive.Close())
	})
	return err
}

// noteKeeper writes down whose machine is about to keep a golden.
func noteKeeper(g *golden, driverName string) error {
	if err := os.WriteFile(filepath.Join(g.dir, goldenDriver), []byte(driverName), 0o600); err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot write the record of a golden")
	}
	return nil
}

// sendGolden makes the layer of a golden from an archive, in the machine of a driver.
// Its files are checked here, and once more there.
func (e *Engine) sendGolden(ctx context.Context, d driver.Driver, g *golden, archive *tar.Reader) error {
	keeper, can := d.(driver.GoldenKeeper)
	if !can || !d.Capabilities().Goldens {
		return fault.New(fault.Unsupported, "the driver %q keeps no goldens", d.Name())
	}
	if err := noteKeeper(g, d.Name()); err != nil {
		return err
	}
	reader, writer := io.Pipe()
	go func() {
		to := tar.NewWriter(writer)
		err := frozen.CopyArchive(to, archive)
		if err == nil {
			err = to.Close()
		}
		writer.CloseWithError(err) // nil is the end
	}()
	kept, err := keeper.WriteGolden(ctx, goldenLease(g), reader)
	_ = reader.Close() // ends the copying
	if errors.Is(err, driver.ErrUnsupported) {
		return fault.Wrap(fault.Unsupported, err, "the driver %q takes no goldens", d.Name()).WithHint("%s", g.rebuild())
	}
	if err != nil {
		return err
	}
	g.Layer, g.Bytes = kept.ID, kept.Bytes
	return nil
}

// keptBy is the driver whose machine keeps a golden; empty where it is a layer here.
func keptBy(dir string) string {
	name, err := os.ReadFile(filepath.Join(dir, goldenDriver))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(name))
}

// removeGolden removes the directory of a golden, its record first: no sandbox is
// forked from a part of it. Its layer goes when nothing uses it. Where a machine that
// keeps it does not answer, the directory stays, as that of a golden that was never
// finished, and the next command for a golden of the name tries again.
func (e *Engine) removeGolden(ctx context.Context, dir string) error {
	err := os.Remove(filepath.Join(dir, goldenRecord))
	if err == nil || errors.Is(err, os.ErrNotExist) {
		if !e.dropsFar(ctx, dir) {
			return nil
		}
		err = hostile.Remove(dir)
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot remove the golden in %q", dir)
	}
	return nil
}

// dropsFar reports whether no machine keeps a golden any more. One that was removed
// counts as gone.
func (e *Engine) dropsFar(ctx context.Context, dir string) bool {
	name := keptBy(dir)
	if name == "" {
		return true
	}
	keeper, can := e.Drivers.Get(name).(driver.GoldenKeeper)
	if !can {
		return true
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), forgetPatience)
	defer cancel()
	return keeper.DropGolden(ctx, goldenLease(&golden{dir: dir})) == nil
}

// forgetGoldens removes the records of goldens that a machine kept, which is gone.
func (e *Engine) forgetGoldens(name string) error {
	dirs, err := e.goldenDirs("", "")
	problems := []error{err}
	for _, dir := range dirs {
		if keptBy(dir) == name {
			problems = append(problems, hostile.Remove(dir))
		}
	}
	return errors.Join(problems...)
}

// standOnFar has a new sandbox begin with a golden of its machine.
func (e *Engine) standOnFar(ctx context.Context, p *place) error {
	keeper := p.goldenKeeper()
	if keeper == nil {
		return fault.New(fault.Unsupported, "cannot begin with the golden %q: the driver %q keeps none", p.golden.Name, p.record.Driver)
	}
	edits, err := e.placeholderEdits(ctx, p)
	if err == nil {
		err = keeper.BeginWith(goldenLease(p.golden), p.golden.Layer, edits, leaseOf(p))
	}
	if err != nil {
		return fault.Wrap("", err, "cannot begin with the golden %q", p.golden.Name).WithHint("%s", p.golden.rebuild())
	}
	return nil
}

// onGolden reports whether a sandbox stands on a golden.
func (e *Engine) onGolden(id, driverName string, g *golden) bool {
	dir := e.Store.SandboxDir(id)
	if names, err := frozen.Needed(dir); err == nil {
		for _, name := range names {
			if name == g.Layer {
				return true
			}
		}
	}
	keeper, can := e.Drivers.Get(driverName).(driver.GoldenKeeper)
	return can && keptBy(g.dir) == driverName && keeper.BegunWith(driver.Lease{ID: id, SandboxID: id, StateDir: dir}) == g.Layer
}
