package engine

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/layer"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// copied reports whether the sandbox's upper directory holds its whole workspace.
func (p *place) copied() bool { return p.record.Carriage == sandbox.CarriageCopy }

// carry decides how the workspace of a new sandbox is carried, and says what
// the place of the state means for it.
func (e *Engine) carry(ctx context.Context, d driver.Driver, record *sandbox.Sandbox) (notes []string) {
	how, why := d.Carriage(ctx, e.Store.Root)
	if d.Traits().Files == sandbox.FilesCarried {
		how = sandbox.CarriageFar
	}
	record.Carriage = how
	if how == sandbox.CarriageCopy && record.Isolation == sandbox.IsolationFull {
		notes = append(notes, "its files are a copy, which is slower but just as isolated: "+why)
	}
	if noexec(e.Store.Root) {
		where := "HOME and /tmp"
		if how == sandbox.CarriageCopy {
			where = "HOME, /tmp and workspace"
		}
		notes = append(notes, "programs in its "+where+" cannot be run: "+e.Store.Root+" is mounted noexec; XDG_STATE_HOME can name a directory that is not")
	}
	return notes
}

// fill copies the layers into the upper directory of a new sandbox. At a later
// start they are there; only the memory of what was copied may be lost.
func (e *Engine) fill(ctx context.Context, p *place) error {
	c := p.files().Copying(p.record.Layers, p.repo.ObjectFormat)
	if p.record.State == sandbox.Creating {
		return c.Make(ctx, e.upperOwner(p), layer.Progress(e.Progress))
	}
	_, err := os.Stat(c.Base)
	if errors.Is(err, fs.ErrNotExist) {
		return c.Forget()
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot read what was copied for sandbox %q", p.record.Name)
	}
	return nil
}
