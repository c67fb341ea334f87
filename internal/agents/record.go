package agents

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/lock"
	"github.com/litterbox-sandbox/litterbox/internal/patch"
)

// record is the changes made to one file. While the file is otherwise unchanged,
// the steps, undone backwards, restore the earlier bytes; after that, Added says
// what may be removed. Records may hold parts of settings, so only their owner can
// read them.
type record struct {
	Version int              `json:"version"`
	File    string           `json:"file"`
	Created bool             `json:"created,omitempty"` // there was none
	Made    []string         `json:"made,omitempty"`    // directories for it
	After   string           `json:"after"`             // SHA-256 of the result
	Steps   [][]patch.Splice `json:"steps"`
	Added   []added          `json:"added,omitempty"`
}

// added is a value that was set, or strings that came into a list.
type added struct {
	Path  []string `json:"path"`
	Items []string `json:"items,omitempty"`
	Old   string   `json:"old,omitempty"` // the text that was there
}

func hash(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

func (h Host) recordFile(full string) string {
	return filepath.Join(h.State, hash([]byte(full))[:32]+".json")
}

// recorded reads the record of a file. An unreadable record counts as none: it
// makes removal less exact, not wrong.
func (h Host) recorded(full string) record {
	none := record{Version: 1, File: full}
	text, err := os.ReadFile(h.recordFile(full))
	if err != nil {
		return none
	}
	var r record
	if json.Unmarshal(text, &r) != nil || r.Version != 1 || r.File != full {
		return none
	}
	return r
}

func (h Host) keep(r record) error {
	if err := os.MkdirAll(h.State, 0o700); err != nil {
		return fault.Wrap(fault.Unavailable, bare(err), "cannot record what was changed in %q", h.State)
	}
	text, err := json.Marshal(r)
	if err != nil {
		return fault.Wrap(fault.Internal, err, "cannot record what was changed")
	}
	name := h.recordFile(r.File)
	err = os.WriteFile(name+".new", text, 0o600)
	if err == nil {
		err = os.Rename(name+".new", name)
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, bare(err), "cannot record what was changed in %q", h.State)
	}
	return nil
}

func (h Host) forget(full string) error {
	if err := ignoreMissing(os.Remove(h.recordFile(full))); err != nil {
		return fault.Wrap(fault.Unavailable, bare(err), "cannot forget what was changed in %q", h.State)
	}
	return nil
}

// lock keeps two commands from changing settings at once; the caller closes the
// returned file.
func (h Host) lock(ctx context.Context) (*os.File, error) {
	err := os.MkdirAll(h.State, 0o700)
	var f *os.File
	if err == nil {
		f, err = os.OpenFile(filepath.Join(h.State, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	}
	if err == nil {
		if err = lock.File(ctx, f); err != nil {
			err = errors.Join(err, f.Close())
		}
	}
	if fault.KindOf(err) == fault.Canceled {
		return nil, err
	}
	if err != nil {
		kind := fault.Unavailable
		if errors.Is(err, fs.ErrPermission) {
			kind = fault.Denied
		}
		return nil, fault.Wrap(kind, bare(err), "cannot lock %q", h.State)
	}
	return f, nil
}

// undo gives the content that was there before; false where the file has changed
// since.
func (r record) undo(content []byte) ([]byte, bool) {
	if len(r.Steps) == 0 || hash(content) != r.After {
		return nil, false
	}
	for i := len(r.Steps) - 1; i >= 0; i-- {
		before, err := patch.Apply(content, patch.Invert(r.Steps[i]))
		if err != nil {
			return nil, false
		}
		content = before
	}
	if content == nil {
		content = []byte{}
	}
	return content, true
}
