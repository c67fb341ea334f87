package engine

import (
	"archive/tar"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/frozen"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/seal"
)

// largestGoldenRecord bounds the record in an archive.
const largestGoldenRecord = 4 << 20

// ExportGolden writes a golden as a compressed archive. Of several with the name it is
// that of the driver; where that is empty, one of this machine, or the newest.
func (e *Engine) ExportGolden(ctx context.Context, dir, name, driverName string, to io.Writer) (out Golden, err error) {
	slug, err := goldenName(name)
	if err != nil {
		return Golden{}, err
	}
	gitDir, err := gitDirOf(ctx, dir)
	if err != nil {
		return Golden{}, err
	}
	unlock, err := e.lockGolden(ctx, gitDir, slug) // it stays while it is read
	if err != nil {
		return Golden{}, err
	}
	defer unlock()
	g, err := e.exported(gitDir, slug, driverName)
	if err != nil {
		return Golden{}, err
	}
	if frozen.LayersOf(g.dir, []string{g.Layer}).Foundation() != "" {
		return Golden{}, fault.New(fault.Unsupported, "cannot export the golden %q: its packages belong to the system directories of this machine", slug).
			WithHint("litterbox build, on the other machine")
	}
	data, err := seal.Encode(g)
	if err != nil {
		return Golden{}, fault.Wrap(fault.Internal, err, "cannot write the record of a golden")
	}
	compressed, err := gzip.NewWriterLevel(until{ctx, to}, gzip.BestSpeed)
	if err != nil {
		return Golden{}, fault.Wrap(fault.Internal, err, "cannot compress an archive")
	}
	archive := tar.NewWriter(compressed)
	header := &tar.Header{Typeflag: tar.TypeReg, Name: goldenRecord, Size: int64(len(data)), Mode: 0o600, ModTime: g.CreatedAt}
	if err = archive.WriteHeader(header); err == nil {
		_, err = archive.Write(data)
	}
	if err == nil {
		err = e.packGolden(ctx, g, archive)
	}
	if err = errors.Join(err, archive.Close(), compressed.Close()); err != nil {
		return Golden{}, fault.Wrap(fault.Unavailable, err, "cannot export the golden %q", slug)
	}
	return e.shownGolden(g), nil
}

// exported finds a golden to export.
func (e *Engine) exported(gitDir, name, driverName string) (*golden, error) {
	found, err := e.goldens(gitDir)
	if err != nil {
		return nil, err
	}
	var newest *golden
	for _, g := range found {
		if g.Name != name || driverName != "" && g.Driver != driverName {
			continue
		}
		if keptBy(g.dir) == "" {
			return g, nil
		}
		if newest == nil || g.CreatedAt.After(newest.CreatedAt) {
			newest = g
		}
	}
	if newest == nil {
		return nil, e.noGolden(gitDir, name, "export")
	}
	return newest, nil
}

// packGolden writes the files of a golden to an archive. Those of another machine
// are checked on their way.
func (e *Engine) packGolden(ctx context.Context, g *golden, archive *tar.Writer) error {
	name := keptBy(g.dir)
	if name == "" {
		return frozen.Box{Dir: g.dir}.Pack(g.Layer, archive)
	}
	keeper, can := e.Drivers.Get(name).(driver.GoldenKeeper)
	if !can {
		return fault.New(fault.Unavailable, "its files are in a machine of the driver %q, which is not known", name)
	}
	files, err := keeper.ReadGolden(ctx, goldenLease(g), g.Layer)
	if err != nil {
		return err
	}
	return errors.Join(frozen.CopyArchive(archive, tar.NewReader(files)), files.Close())
}

// until ends the writing with a context.
type until struct {
	ctx context.Context
	to  io.Writer
}

func (u until) Write(data []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, fault.Wrap(fault.Canceled, err, "cannot go on writing")
	}
	return u.to.Write(data)
}

// GoldenImport asks for a golden from an archive.
type GoldenImport struct {
	Dir     string
	Name    string // empty: as the archive calls it
	Driver  string // empty: that of the archive if it is there, or else that of new sandboxes
	Replace bool   // the golden that has the name
	From    io.Reader
}

// ImportGolden makes a golden of an archive, which may come from anywhere: its
// record is trusted only about how it was made, and its files are checked one by
// one. It fails with fault.AlreadyExists without Replace; a replaced golden counts
// until the new one is whole.
func (e *Engine) ImportGolden(ctx context.Context, request GoldenImport) (in Golden, err error) {
	dir, name := request.Dir, request.Name
	if name != "" {
		if name, err = sandbox.Slug(name); err != nil {
			return Golden{}, err
		}
	}
	gitDir, err := gitDirOf(ctx, dir)
	if err != nil {
		return Golden{}, err
	}
	ctx, call, err := e.record(ctx, "golden import", dir, "", map[string]any{"golden": name, "replace": request.Replace})
	if err != nil {
		return Golden{}, err
	}
	defer func() { err = call.end("", nil, err) }()
	compressed, err := gzip.NewReader(whileRead{ctx, request.From})
	if err != nil {
		return Golden{}, fault.Wrap(fault.Invalid, err, "cannot read the archive").WithHint("litterbox golden export NAME -o FILE")
	}
	archive := tar.NewReader(compressed)
	g, err := readArchivedGolden(archive)
	if err != nil {
		return Golden{}, err
	}
	if name != "" {
		g.Name = name
	}
	d, err := e.importing(ctx, request, g.Driver)
	if err != nil {
		return Golden{}, err
	}
	g.Driver = d.Name()
	unlock, err := e.lockGolden(ctx, gitDir, g.Name)
	if err != nil {
		return Golden{}, err
	}
	defer unlock()
	if err := e.clearGoldens(ctx, gitDir, g.Name); err != nil {
		return Golden{}, err
	}
	if !request.Replace {
		had, err := e.findGolden(gitDir, g.Name, g.Driver)
		if err == nil && had != nil {
			err = fault.New(fault.AlreadyExists, "cannot import the golden %q: the repository has a golden of this name", g.Name).
				WithHint("litterbox golden import FILE --name NAME, or --force to replace it")
		}
		if err != nil {
			return Golden{}, err
		}
	}
	g.GitDir, g.dir, g.Imported = gitDir, e.newGoldenDir(gitDir, g.Name), true
	if err := e.unpackGolden(ctx, d, g, archive); err != nil {
		return Golden{}, errors.Join(fault.Wrap("", err, "cannot import the golden %q", g.Name).WithHint("%s", fault.HintOf(err)), e.removeGolden(ctx, g.dir), e.sweepFrozen())
	}
	// The log is that of the golden that was replaced.
	logErr := e.removeGoldenLog(gitDir, g.Name)
	return e.shownGolden(g), errors.Join(logErr, e.clearGoldens(ctx, gitDir, g.Name), e.sweepFrozen())
}

// importing chooses the driver of an imported golden.
func (e *Engine) importing(ctx context.Context, request GoldenImport, archived string) (driver.Driver, error) {
	name := request.Driver
	if d := e.Drivers.Get(archived); name == "" && d != nil && d.Capabilities().Fork {
		name = archived
	}
	if name == "" {
		repo, err := e.memory().Open(ctx, request.Dir)
		if err != nil {
			return nil, err
		}
		found, err := e.settings(ctx, repo.Top, repo.CommonDir)
		if err != nil {
			return nil, err
		}
		name = cmp.Or(driverOf(found.config), e.Drivers.Default())
	}
	d, err := e.Drivers.Find(name)
	if err == nil && !d.Capabilities().Fork {
		err = fault.New(fault.Unsupported, "the driver %q uses no goldens", name)
	}
	return d, err
}

// unpackGolden makes the layer of a golden from an archive, and its record.
func (e *Engine) unpackGolden(ctx context.Context, d driver.Driver, g *golden, archive *tar.Reader) error {
	if err := os.MkdirAll(g.dir, 0o700); err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot make the directory of a golden")
	}
	if d.Traits().Files == sandbox.FilesCarried {
		if err := e.sendGolden(ctx, d, g, archive); err != nil {
			return err
		}
		return g.save(e.Store)
	}
	draft, err := goldenBox(d, g.dir).Draft()
	if err != nil {
		return err
	}
	if err := draft.Unpack(archive); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fault.Wrap(fault.Canceled, err, "it was interrupted")
	}
	g.Layer, g.Bytes = draft.Name, inodes{}.size(draft.Dir)
	if err := draft.Keep(); err != nil {
		return err
	}
	return g.save(e.Store)
}

// readArchivedGolden reads the record that begins an archive, and drops everything
// in it that would point elsewhere.
func readArchivedGolden(archive *tar.Reader) (*golden, error) {
	header, err := archive.Next()
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "cannot read the archive")
	}
	if header.Name != goldenRecord || header.Typeflag != tar.TypeReg || header.Size > largestGoldenRecord {
		return nil, fault.New(fault.Invalid, "cannot import a golden: the archive does not begin with the record of one").
			WithHint("litterbox golden export NAME -o FILE")
	}
	data, err := io.ReadAll(io.LimitReader(archive, largestGoldenRecord))
	g := &golden{}
	if err == nil {
		err = seal.Decode(data, g)
	}
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "cannot read the record of the golden")
	}
	if g.Version > sandbox.RecordVersion {
		return nil, fault.New(fault.Unsupported, "cannot import a golden of version %d: this program knows %d", g.Version, sandbox.RecordVersion).
			WithHint("install a newer litterbox")
	}
	if name, err := sandbox.Slug(g.Name); err != nil || name != g.Name {
		return nil, fault.New(fault.Invalid, "cannot import a golden that is called %q", g.Name).WithHint("litterbox golden import FILE --name NAME")
	}
	for _, one := range g.Placeholders {
		if part, below := frozen.PartOf(one.Path); part == "" || below == "" || !filepath.IsLocal(one.Path) || filepath.Clean(one.Path) != one.Path {
			return nil, fault.New(fault.Denied, "cannot import a golden whose record names %q", one.Path)
		}
		if len(one.Placeholder) < 8 || one.Secret == "" {
			return nil, fault.New(fault.Denied, "cannot import a golden whose record has no placeholder for %q", one.Path)
		}
	}
	// An image is named by what this machine knows; here it matters only for the
	// comparison, which MadeFrom holds.
	g.Image, g.Layer, g.Took = nil, "", max(0, min(g.Took, 1000*time.Hour))
	return g, nil
}

// whileRead ends the reading with a context.
type whileRead struct {
	ctx  context.Context
	from io.Reader
}

func (r whileRead) Read(data []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, fault.Wrap(fault.Canceled, err, "cannot go on reading")
	}
	return r.from.Read(data)
}
