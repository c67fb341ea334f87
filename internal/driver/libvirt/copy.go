package libvirt

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// A copy of a domain is another domain on a copy of its disk, which comes up at the
// moment of a snapshot, with the memory if that has any.

// original is the domain whose disk was copied, as the descriptions of its snapshots
// name it.
type original struct {
	UUID    string `json:"uuid"`
	Dir     string `json:"dir"`
	Sandbox string `json:"sandbox"`
}

func (m Machine) original(h handle) original {
	return original{UUID: h.UUID, Dir: h.Dir, Sandbox: m.sandbox()}
}

// renamed is the description of an original's snapshot for its copy.
func (o original) renamed(text string, to original) string {
	return strings.NewReplacer(
		o.Dir+"/", to.Dir+"/",
		nameOf(o.UUID)+"<", nameOf(to.UUID)+"<",
		o.UUID, to.UUID,
		"id='"+o.Sandbox+"'", "id='"+to.Sandbox+"'",
		`id="`+o.Sandbox+`"`, `id="`+to.Sandbox+`"`,
	).Replace(text)
}

// nameOf is the name of a domain.
func nameOf(uuid string) string { return "litterbox-" + uuid[:8] }

// copyDisk copies the domain's disk. A domain that runs stands still meanwhile: QEMU
// has written everything it knows about the disk then (vm_stop flushes).
func (m Machine) copyDisk(ctx context.Context, h handle, r *keptRecord, to string) (err error) {
	state, err := m.known(ctx, h, r)
	if err != nil {
		return err
	}
	if state.State == Runs {
		r.Copying = true
		if err := r.write(m.StateDir); err != nil {
			return err
		}
		_, err := m.ask(ctx, h, OpSuspend)
		if err == nil {
			err = copyFile(h.disk(), to)
		}
		return errors.Join(err, m.stopCopying(ctx, h, r))
	}
	return copyFile(h.disk(), to)
}

// stopCopying lets a domain go on that stood still for a copy of its disk.
func (m Machine) stopCopying(ctx context.Context, h handle, r *keptRecord) error {
	state, err := m.ask(ctx, h, OpState)
	if err == nil && state.State == Paused && !m.Paused() {
		_, err = m.ask(ctx, h, OpResume)
	}
	if err != nil && !errors.Is(err, driver.ErrMachineLost) {
		return err
	}
	r.Copying = false
	return r.write(m.StateDir)
}

// copyFile copies a file, which is whole or does not appear.
func copyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return driver.Seal(err, "cannot read the disk of the domain")
	}
	defer in.Close()
	temp := to + ".new"
	out, err := os.OpenFile(temp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = io.Copy(out, in) // by the kernel, and shared where the file system can
		err = errors.Join(err, out.Close())
		if err == nil {
			err = os.Rename(temp, to)
		}
	}
	if err != nil {
		if left := os.Remove(temp); left != nil && !errors.Is(left, fs.ErrNotExist) {
			err = errors.Join(err, left)
		}
		return driver.Seal(err, "cannot copy the disk of the domain")
	}
	return nil
}

// comeUp makes the domain on a copied disk, at one of the original's snapshots, and
// removes all of those from the disk. The domain runs afterwards.
func (m Machine) comeUp(ctx context.Context, h handle, from original, all []kept, id string) error {
	if err := m.define(ctx, h); err != nil {
		return err
	}
	var r keptRecord
	for _, one := range all {
		one.XML = from.renamed(one.XML, m.original(h))
		if err := m.redefine(ctx, h, one); err != nil {
			return err
		}
		r.Kept = append(r.Kept, one)
	}
	at := r.find(id)
	if at < 0 {
		return fault.Wrap("", driver.ErrNoSnapshot, "cannot bring up a copy of the domain")
	}
	if err := m.revert(ctx, h, &r, r.Kept[at]); err != nil {
		return err
	}
	if !r.Kept[at].On {
		if err := m.start(ctx, h); err != nil {
			return err
		}
	}
	for _, one := range r.Kept {
		if err := m.forget(ctx, h, one.ID); err != nil {
			return err
		}
	}
	return nil
}

// forget removes a snapshot from the disk.
func (m Machine) forget(ctx context.Context, h handle, id string) error {
	_, err := m.Options.Hypervisor.Do(ctx, Request{Op: OpForget, URI: h.URI, UUID: h.UUID, Name: id})
	return err
}
