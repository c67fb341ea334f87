package libvirt

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/seal"
)

// A machine that has just begun is the same for every sandbox until its first place
// begins. So the first one of an image is saved, with its memory, when its outpost
// answers, and the others begin as copies of it: nothing boots.

// warmRecord describes a saved machine, beside its disk. It is written last.
type warmRecord struct {
	Version int      `json:"version"`
	Image   string   `json:"image"` // its directory
	From    original `json:"from"`
	Kept    kept     `json:"kept"`
}

const warmFile = "warm.json"

// warmDir is where the saved machine for a domain is. Another image, libvirt, or shape
// of the domain has another one.
func (m Machine) warmDir(ctx context.Context, h handle) (string, error) {
	version, err := m.ask(ctx, h, OpVersion)
	if err != nil {
		return "", err
	}
	d := m.domain(h)
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%s\n%s %d %d %d %d", h.Image, h.URI, version.Text, d.Type, d.Memory, d.CPUs, d.Idle, len(d.Ports)))
	return filepath.Join(warmBeside(h.Image), hex.EncodeToString(sum[:8])), nil
}

// warmBeside is where the saved machines of all images are that lie beside one.
func warmBeside(image string) string { return filepath.Join(filepath.Dir(image), "warm") }

// begin brings up a domain that has nothing yet: as a copy of the saved machine, or
// by booting one, which is saved then. Neither is necessary for the domain to work.
func (m Machine) begin(ctx context.Context, h handle) error {
	dir, err := m.warmDir(ctx, h)
	if err != nil {
		return err
	}
	if data, err := os.ReadFile(filepath.Join(dir, warmFile)); err == nil {
		var r warmRecord
		if err = seal.Decode(data, &r); err == nil {
			err = m.copyWarm(ctx, h, dir, r)
		}
		if err == nil || ctx.Err() != nil {
			return err
		}
		// Whatever is wrong with it, a machine that boots is better.
		if err := errors.Join(m.undo(ctx, h), os.RemoveAll(dir)); err != nil {
			return driver.Seal(err, "cannot remove a saved machine that does not come up")
		}
	}
	if err := m.start(ctx, h); err != nil {
		return err
	}
	return m.saveWarm(context.WithoutCancel(ctx), h, dir)
}

func (m Machine) copyWarm(ctx context.Context, h handle, dir string, r warmRecord) error {
	if err := m.makeDir(h); err != nil {
		return err
	}
	if err := copyFile(filepath.Join(dir, "state.qcow2"), h.disk()); err != nil {
		return err
	}
	return m.comeUp(ctx, h, r.From, []kept{r.Kept}, r.Kept.ID)
}

// undo ends a domain that did not come up, and removes its disk.
func (m Machine) undo(ctx context.Context, h handle) error {
	for _, op := range []Op{OpStop, OpUndefine} {
		if _, err := m.ask(ctx, h, op); err != nil && !errors.Is(err, driver.ErrMachineLost) {
			return err
		}
	}
	return os.RemoveAll(h.Dir)
}

// saveWarm saves a machine that has just begun. One that cannot be saved works all
// the same, unless it no longer runs.
func (m Machine) saveWarm(ctx context.Context, h handle, dir string) error {
	err := m.trySaveWarm(ctx, h, dir)
	if err == nil {
		return nil
	}
	answer, asked := m.ask(ctx, h, OpState)
	if asked == nil && answer.State == Runs {
		return nil
	}
	return errors.Join(err, asked)
}

func (m Machine) trySaveWarm(ctx context.Context, h handle, dir string) (err error) {
	if err := os.MkdirAll(filepath.Dir(dir), 0o711); err != nil {
		return err
	}
	temp, err := os.MkdirTemp(filepath.Dir(dir), ".saving-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	r, err := readKept(m.StateDir)
	if err != nil {
		return err
	}
	var one kept
	if err := m.keep(ctx, h, &r, &one); err != nil {
		return err
	}
	err = m.copyDisk(ctx, h, &r, filepath.Join(temp, "state.qcow2"))
	r.Pending, r.Kept = one.ID, nil
	if err := errors.Join(err, r.write(m.StateDir), m.dropPending(ctx, h, &r)); err != nil {
		return err
	}
	data, err := seal.Encode(warmRecord{Version: 1, Image: h.Image, From: m.original(h), Kept: one})
	if err == nil {
		err = os.WriteFile(filepath.Join(temp, warmFile), data, 0o600)
	}
	if err == nil {
		err = os.Rename(temp, dir)
	}
	if errors.Is(err, fs.ErrExist) { // another process was faster
		return nil
	}
	return err
}
