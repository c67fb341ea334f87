package remote

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/outpost"
	"github.com/litterbox-sandbox/litterbox/internal/seal"
)

// File is the record of where the files of a sandbox are, in its state directory.
const File = "machine.json"

// where is what this machine knows about a sandbox's files in another. The
// identity is made here and written down before the files begin there: a machine
// that was made again, or lost its disk, has no files of it, and is not asked
// about others.
type where struct {
	Version  int    `json:"version"`
	Machine  string `json:"machine"`
	Identity string `json:"identity"`
	Begun    bool   `json:"begun"` // the files were taken along, once and for all
	// With is what they began with besides.
	With *begunWith `json:"with,omitempty"`
}

func (w where) place(lease driver.Lease) outpost.Place {
	return outpost.Place{Sandbox: lease.SandboxID, Identity: w.Identity, Handle: lease.Handle}
}

// readWhere fails with fs.ErrNotExist for a sandbox that has not begun anywhere.
func readWhere(stateDir string) (where, error) {
	var w where
	data, err := os.ReadFile(filepath.Join(stateDir, File))
	if err != nil {
		return w, err
	}
	if err := seal.Decode(data, &w); err != nil {
		return w, fault.Wrap(fault.Internal, err, "cannot read in which machine the sandbox's files are")
	}
	return w, nil
}

// Inside returns the ids of the sandboxes, of the directory of all state, whose files
// began in the machine of that name. Files of deleted sandboxes may be kept there.
func Inside(root, machine string) ([]string, error) {
	records, err := driver.Records(root, File)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, path := range records {
		w, err := readWhere(filepath.Dir(path))
		if errors.Is(err, fs.ErrNotExist) {
			continue // just deleted
		}
		if err != nil {
			return nil, err
		}
		if w.Machine == machine {
			ids = append(ids, filepath.Base(filepath.Dir(path)))
		}
	}
	return ids, nil
}

func (w where) write(stateDir string) error {
	data, err := seal.Encode(w)
	if err != nil {
		return err
	}
	temp := filepath.Join(stateDir, "."+File)
	if err := os.WriteFile(temp, data, 0o600); err != nil {
		return driver.Seal(err, "cannot record in which machine the sandbox's files are")
	}
	if err := os.Rename(temp, filepath.Join(stateDir, File)); err != nil {
		return driver.Seal(err, "cannot record in which machine the sandbox's files are")
	}
	return nil
}

// begunIn returns the record of a new sandbox, whose files will begin in a machine.
func begunIn(machine string) where {
	id := make([]byte, 16)
	_, _ = rand.Read(id) // never fails, crypto/rand
	return where{Version: 1, Machine: machine, Identity: hex.EncodeToString(id)}
}

// begin takes along the initial files of a new sandbox. One that has begun
// before finds its files there or does not start: nothing begins twice.
func (d *Driver) begin(ctx context.Context, c *client, spec driver.Spec) (where, error) {
	w, err := readWhere(spec.StateDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return w, err
	}
	if err == nil && w.Begun {
		if w.Machine != c.machine.Name() {
			return w, fault.New(fault.Conflict, "cannot start sandbox %q in the machine %q: its files are in %q", spec.Name, c.machine.Name(), w.Machine)
		}
		return w, nil
	}
	if err == nil && w.With != nil && w.Machine != c.machine.Name() {
		return w, fault.Wrap("", driver.ErrUnsupported, "cannot start sandbox %q in the machine %q with a golden of %q", spec.Name, c.machine.Name(), w.Machine)
	}
	if err != nil || w.Machine != c.machine.Name() {
		w = begunIn(c.machine.Name())
		if err := w.write(spec.StateDir); err != nil {
			return w, err
		}
	}
	err = again(ctx, func() error {
		stream, answer, err := c.open(ctx, w.beginning(w.place(driver.Lease{SandboxID: spec.SandboxID})))
		if err != nil {
			return err
		}
		defer stream.Close()
		if answer.Offset < 0 {
			return nil // an attempt that was cut off was whole
		}
		return c.upload(ctx, stream, beginning(spec), 0, func(int64) {})
	})
	if err != nil {
		return w, err
	}
	w.Begun = true
	return w, w.write(spec.StateDir)
}
