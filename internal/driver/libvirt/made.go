package libvirt

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/remote"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/seal"
)

// Kinds of what Made lists.
const (
	kindShared = "virtual machine"
	kindSaved  = "saved machine"
)

// Made implements driver.Maker: the shared domain.
func (d *Shared) Made(ctx context.Context, root string) ([]driver.Made, error) {
	m := SharedIn(d.options, root)
	h, err := readHandle(m.StateDir)
	if errors.Is(err, driver.ErrMachineLost) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	made := driver.Made{Name: nameOf(h.UUID), Kind: kindShared, Image: filepath.Base(h.Image), Engine: h.URI, Bytes: allocated(h.disk())}
	if made.Sandboxes, err = remote.Inside(root, m.Name()); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	at, err := m.State(ctx)
	if err != nil {
		made.Trouble = err.Error()
	}
	made.Running = at.State == string(Runs)
	return []driver.Made{made}, nil
}

// Unmake implements driver.Maker.
func (d *Shared) Unmake(ctx context.Context, root, name string) error {
	m := SharedIn(d.options, root)
	h, err := readHandle(m.StateDir)
	if errors.Is(err, driver.ErrMachineLost) || err == nil && nameOf(h.UUID) != name {
		return nil
	}
	if err != nil {
		return err
	}
	inside, err := remote.Inside(root, m.Name())
	if err != nil {
		return err
	}
	if len(inside) > 0 {
		return fault.New(fault.Conflict, "cannot remove the virtual machine %s: %d sandboxes are in it", name, len(inside))
	}
	return m.Forget(ctx)
}

// Made implements driver.Maker: what new sandboxes no longer begin with. Those are the
// saved machines of other images, and copies of a disk of the user's that has changed
// since, if no machine uses them. The rest is in use, and not listed.
func (d *Driver) Made(context.Context, string) ([]driver.Made, error) {
	image, err := d.options.Image()
	if err != nil {
		return nil, nil // there never was one, or it is not known which are in use
	}
	copies, err := d.options.oldDisks(image)
	if err != nil {
		return nil, err
	}
	dirs, err := filepath.Glob(filepath.Join(warmBeside(image), "*", warmFile))
	if err != nil {
		return nil, err
	}
	all := copies
	for _, file := range dirs {
		var r warmRecord
		data, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue // just removed
		}
		if err == nil {
			err = seal.Decode(data, &r)
		}
		if err == nil && builtOf(r.Image) == image && !d.options.stale(image, r.Image) || errors.Is(err, fs.ErrPermission) {
			continue
		}
		dir, of := filepath.Dir(file), "an older version"
		if r.Image != "" {
			of = filepath.Base(r.Image)
		}
		all = append(all, driver.Made{
			Name: savedPrefix + filepath.Base(dir), Kind: kindSaved, Image: of, Engine: noLonger, Bytes: allocated(filepath.Join(dir, "state.qcow2")),
		})
	}
	return all, nil
}

const (
	savedPrefix = "saved-"
	diskPrefix  = "disk-"
	noLonger    = "no longer used"
)

// Unmake implements driver.Maker.
func (d *Driver) Unmake(ctx context.Context, root, name string) error {
	all, err := d.Made(ctx, root)
	if err != nil {
		return err
	}
	for _, one := range all {
		if one.Name != name {
			continue
		}
		image, err := d.options.Image()
		if err == nil && one.Kind == driver.MadeDisk {
			err = removeDisk(filepath.Join(filepath.Dir(image), strings.TrimPrefix(name, diskPrefix)))
		} else if err == nil {
			err = os.RemoveAll(filepath.Join(warmBeside(image), strings.TrimPrefix(name, savedPrefix)))
		}
		if err != nil {
			return driver.Seal(err, "cannot remove a "+one.Kind)
		}
	}
	return nil
}
