package station

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/frozen"
	"github.com/litterbox-sandbox/litterbox/internal/hostile"
	"github.com/litterbox-sandbox/litterbox/internal/outpost"
)

// A golden is a directory with the record of its one layer (package frozen), which
// counts when it is marked as complete. Places that began with it need the layer,
// not the directory.

func (s *Station) golden(name string) string { return filepath.Join(s.Root, "goldens", name) }

func (s *Station) goldenLease(name string) driver.Lease {
	return driver.Lease{ID: "golden", SandboxID: "golden", StateDir: s.golden(name)}
}

// goldens answers requests about goldens that use the stream.
func (s *Station) goldens(stream *outpost.Stream, q outpost.Request) error {
	switch q.Op {
	case outpost.OpKeepGolden:
		return s.keepGolden(stream, q)
	case outpost.OpReadGolden:
		return s.readGolden(stream, q)
	case outpost.OpWriteGolden:
		return s.writeGolden(stream, q)
	}
	return s.beginWith(stream, q)
}

// mostPaths bounds the paths of a golden, in bytes.
const mostPaths = 256 << 20

// keepGolden makes the golden of a place that does not run. It goes on without the
// host, which finds the golden by its name.
func (s *Station) keepGolden(stream *outpost.Stream, q outpost.Request) error {
	ctx := context.Background()
	return s.locked(ctx, "place-"+q.Place.Sandbox, func() error {
		r, err := s.its(q.Place)
		if err != nil {
			return err
		}
		if r.Whole {
			return fault.Wrap("", driver.ErrUnsupported, "cannot keep a golden of a sandbox whose files are a copy")
		}
		if len(r.Handle) > 0 {
			q.Place.Handle = r.Handle
			if err := s.Driver.Attach(ctx, s.lease(q.Place)); !errors.Is(err, driver.ErrMachineLost) {
				return errors.Join(fault.New(fault.Conflict, "cannot keep a golden of a running sandbox"), err)
			}
		}
		if err := outpost.WriteMessage(stream, outpost.Answer{}); err != nil {
			return err
		}
		paths, err := readPaths(stream)
		if err != nil {
			return err
		}
		return s.makeGolden(stream, q.To.Identity, func(d *frozen.Draft) error {
			return d.Fill(s.box(s.dir(q.Place.Sandbox), q.Place.Sandbox), paths)
		})
	})
}

// writeGolden makes a golden of an archive that the host sends.
func (s *Station) writeGolden(stream *outpost.Stream, q outpost.Request) error {
	if err := outpost.WriteMessage(stream, outpost.Answer{}); err != nil {
		return err
	}
	return s.makeGolden(stream, q.To.Identity, func(d *frozen.Draft) error { return d.Unpack(tar.NewReader(stream)) })
}

// makeGolden makes a golden of the layer that fill fills, and tells the host of it.
func (s *Station) makeGolden(stream *outpost.Stream, name string, fill func(*frozen.Draft) error) error {
	var kept driver.Snapshot
	err := s.locked(context.Background(), "golden-"+name, func() error {
		dir := s.golden(name)
		err := os.MkdirAll(filepath.Dir(dir), 0o700)
		if err == nil {
			err = os.Mkdir(dir, 0o700)
		}
		if err != nil {
			return driver.Seal(err, "cannot make the directory of a golden")
		}
		if kept, err = s.fillGolden(dir, fill); err != nil {
			return errors.Join(err, s.removeGolden(name))
		}
		return nil
	})
	if err != nil {
		return err
	}
	return outpost.WriteMessage(stream, outpost.Answer{Snapshots: []driver.Snapshot{kept}})
}

func readPaths(r io.Reader) ([]string, error) {
	var all strings.Builder
	if n, err := io.Copy(&all, io.LimitReader(r, mostPaths+1)); err != nil || n > mostPaths {
		return nil, errors.Join(fault.New(fault.Invalid, "cannot read the paths of a golden"), err)
	}
	var paths []string
	for path := range strings.SplitSeq(all.String(), "\x00") {
		if path != "" {
			paths = append(paths, path)
		}
	}
	return paths, nil
}

func (s *Station) fillGolden(dir string, fill func(*frozen.Draft) error) (kept driver.Snapshot, err error) {
	own := s.Driver.Ownership("golden")
	draft, err := frozen.Box{Dir: dir, Owner: frozen.Owner{UID: own.UpperUID, GID: own.UpperGID}}.Draft()
	if err != nil {
		return kept, err
	}
	if err := fill(draft); err != nil {
		return kept, err
	}
	kept = driver.Snapshot{ID: draft.Name, Bytes: hostile.Counted{}.Size(draft.Dir)}
	if err := draft.Keep(); err != nil {
		return kept, err
	}
	if err := os.WriteFile(filepath.Join(dir, complete), nil, 0o600); err != nil {
		return kept, driver.Seal(err, "cannot finish a golden")
	}
	return kept, nil
}

// box is a place as package frozen knows it, with its files in dir.
func (s *Station) box(dir, sandbox string) frozen.Box {
	own := s.Driver.Ownership(sandbox)
	return frozen.Box{Dir: dir, Owner: frozen.Owner{UID: own.UpperUID, GID: own.UpperGID}}
}

// hasGolden fails with driver.ErrNoSnapshot if a golden is not there.
func (s *Station) hasGolden(q outpost.Request) error {
	r, err := frozen.Read(s.golden(q.To.Identity))
	if err == nil {
		_, err = os.Stat(filepath.Join(s.golden(q.To.Identity), complete))
	}
	if errors.Is(err, fs.ErrNotExist) || err == nil && !r.Has(q.Snapshot) {
		return fault.Wrap("", driver.ErrNoSnapshot, "the machine no longer has the golden")
	}
	return err
}

// readGolden streams a golden.
func (s *Station) readGolden(stream *outpost.Stream, q outpost.Request) error {
	return s.locked(context.Background(), "golden-"+q.To.Identity, func() error {
		if err := s.hasGolden(q); err != nil {
			return err
		}
		if err := outpost.WriteMessage(stream, outpost.Answer{}); err != nil {
			return err
		}
		archive := tar.NewWriter(stream)
		if err := errors.Join(frozen.Box{Dir: s.golden(q.To.Identity)}.Pack(q.Snapshot, archive), archive.Close()); err != nil {
			stream.Abort() // an incomplete archive has no end
		}
		return nil
	})
}

// beginWith is begin for a place that stands on a golden.
func (s *Station) beginWith(stream *outpost.Stream, q outpost.Request) error {
	return s.beginBy(stream, q.Place, func(building string) error {
		return s.locked(context.Background(), "golden-"+q.To.Identity, func() error {
			if err := s.hasGolden(q); err != nil {
				return err
			}
			made := driver.Lease{ID: q.Place.Sandbox, SandboxID: q.Place.Sandbox, StateDir: building}
			if _, err := s.Driver.Fork(context.Background(), s.goldenLease(q.To.Identity), q.Snapshot, made); err != nil {
				return err
			}
			for _, part := range []string{frozen.Upper, frozen.Home} { // the host sends these
				if err := hostile.Remove(filepath.Join(building, part)); err != nil {
					return driver.Seal(err, "cannot make the files of the sandbox")
				}
			}
			if err := s.furnish(stream, building, q.Place.Sandbox); err != nil {
				return err
			}
			var edits []frozen.Edit
			for _, one := range q.Edits {
				edits = append(edits, frozen.Edit(one))
			}
			if err := s.box(building, q.Place.Sandbox).Edit(q.Snapshot, edits); err != nil {
				return err
			}
			return s.settleIn(building, q.Place, record{Identity: q.Place.Identity})
		})
	})
}

// dropGolden removes a golden. Its layer goes when no place needs it.
func (s *Station) dropGolden(ctx context.Context, name string) error {
	return s.locked(ctx, "golden-"+name, func() error { return s.removeGolden(name) })
}

func (s *Station) removeGolden(name string) error {
	err := removed(filepath.Join(s.golden(name), complete))
	if err == nil {
		err = hostile.Remove(s.golden(name))
	}
	if err != nil {
		return driver.Seal(err, "cannot remove a golden")
	}
	return s.sweepFrozen()
}

// goldenDirs lists the directories of goldens, unfinished ones too.
func (s *Station) goldenDirs() ([]string, error) {
	entries, err := s.entries("goldens")
	var dirs []string
	for _, entry := range entries {
		dirs = append(dirs, s.golden(entry.Name()))
	}
	return dirs, err
}
