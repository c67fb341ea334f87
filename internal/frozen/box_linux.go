package frozen

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/hostile"
)

// Snapshot keeps everything written up to now. live says that something may
// run, which the caller holds still: then the files are copied, and the
// originals stay where they are.
func (b Box) Snapshot(label string, live bool) (Kept, error) {
	r, err := b.Settled()
	if err != nil {
		return Kept{}, err
	}
	r.Whole = b.Whole
	if !b.Whole && !live && len(r.Stack) >= MaxStack {
		if err := b.joinStack(r); err != nil {
			return Kept{}, err
		}
	}
	kept := Kept{ID: newName(), Label: label, CreatedAt: time.Now().UTC().Truncate(time.Millisecond)}
	above, parts, err := b.parts()
	if err != nil {
		return Kept{}, err
	}
	if !b.Whole && !above {
		kept.Stack = r.Stack // nothing was written since
		r.Kept = append(r.Kept, kept)
		return kept, r.write(b.Dir)
	}
	if !b.Whole {
		kept.Stack = append([]string{kept.ID}, r.Stack...)
	} else {
		kept.Stack = []string{kept.ID}
	}
	p := &Pending{Layer: kept.ID, Copied: b.Whole || live, Stack: r.Stack, Keep: &kept}
	if !p.Copied {
		p.Stack = kept.Stack
	}
	r.Pending = p
	if err := r.write(b.Dir); err != nil {
		return Kept{}, err
	}
	if p.Copied {
		if err := b.copyOut(p.Layer, parts, len(r.Stack) > 0); err != nil {
			return Kept{}, errors.Join(err, b.abandon(r))
		}
	}
	return kept, b.finish(r)
}

// Revert restores the written files, and the layers below them, from a
// snapshot. Anything written since is given up.
func (b Box) Revert(id string) error {
	r, err := b.Settled()
	if err != nil {
		return err
	}
	at := slices.IndexFunc(r.Kept, func(k Kept) bool { return k.ID == id })
	if at < 0 {
		return fs.ErrNotExist
	}
	r.Pending = &Pending{Layer: newName(), Drop: true, Stack: r.Kept[at].Stack}
	if b.Whole {
		r.Pending.Fill, r.Pending.Stack = r.Kept[at].Stack[0], nil
	}
	if err := r.write(b.Dir); err != nil {
		return err
	}
	return b.finish(r)
}

// Delete forgets a snapshot. Its layers stay until [Sweep] finds that no
// sandbox needs them.
func (b Box) Delete(id string) error {
	r, err := b.Settled()
	if err != nil {
		return err
	}
	before := len(r.Kept)
	r.Kept = slices.DeleteFunc(r.Kept, func(k Kept) bool { return k.ID == id })
	if len(r.Kept) == before {
		return nil
	}
	return r.write(b.Dir)
}

// Fork makes to, which has written nothing, begin with a snapshot.
func (b Box) Fork(id string, to Box) error {
	r, err := b.Settled()
	if err != nil {
		return err
	}
	at := slices.IndexFunc(r.Kept, func(k Kept) bool { return k.ID == id })
	if at < 0 {
		return fs.ErrNotExist
	}
	unlock, err := lock(Store(b.Dir))
	if err != nil {
		return err
	}
	defer unlock()
	stack := r.Kept[at].Stack
	for _, name := range []string{Upper, Home} {
		if err := hostile.Remove(filepath.Join(to.Dir, name)); err != nil {
			return fault.Wrap(fault.Unavailable, err, "cannot make way for %q of a sandbox", name)
		}
	}
	if b.Whole {
		fresh := &Record{Version: version, Whole: true}
		if err := fresh.write(to.Dir); err != nil {
			return err
		}
		return to.fill(stack[0])
	}
	fresh := &Record{Version: version, Stack: slices.Clone(stack)}
	if err := fresh.write(to.Dir); err != nil {
		return err
	}
	return to.empty(stack)
}

// Settled returns the record once everything that was begun is finished.
func (b Box) Settled() (*Record, error) {
	r, err := Read(b.Dir)
	if err != nil || r.Pending == nil {
		return r, err
	}
	if p := r.Pending; p.Copied && !exists(b.layer(p.Layer)) {
		return r, b.abandon(r) // its maker died while copying
	}
	return r, b.finish(r)
}

// abandon takes back a copy that was not completed.
func (b Box) abandon(r *Record) error {
	layer := b.layer(r.Pending.Layer)
	if err := errors.Join(hostile.Remove(layer+partial), hostile.Remove(layer)); err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot remove %q", layer)
	}
	r.Pending = nil
	return r.write(b.Dir)
}

// finish completes the pending change from where it was left.
func (b Box) finish(r *Record) error {
	p := r.Pending
	if !p.Copied {
		if err := b.moveOut(p.Layer); err != nil {
			return err
		}
		if p.Fill != "" {
			if err := b.fill(p.Fill); err != nil {
				return err
			}
		} else if err := b.empty(append([]string{p.Layer}, p.Stack...)); err != nil {
			return err
		}
	}
	r.Stack = p.Stack
	if p.Keep != nil {
		r.Kept = append(r.Kept, *p.Keep)
	}
	r.Pending = nil
	if err := r.write(b.Dir); err != nil {
		return err
	}
	if p.Drop {
		if err := hostile.Remove(b.layer(p.Layer)); err != nil {
			return fault.Wrap(fault.Unavailable, err, "cannot remove %q", b.layer(p.Layer))
		}
	}
	return nil
}
