package frozen

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/seal"
)

// File is the record in the directory of a sandbox.
const File = "frozen.json"

const version = 1

// Record says what a sandbox stands on.
type Record struct {
	Version int `json:"version"`
	// Stack are the layers below what the sandbox writes, newest first.
	Stack []string `json:"stack"`
	Kept  []Kept   `json:"kept"` // its snapshots, oldest first
	// Whole is set if there is no stack, see [Box].
	Whole bool `json:"whole,omitempty"`
	// Pending is a change that was begun and must be finished.
	Pending *Pending `json:"pending,omitempty"`
}

// Kept is one snapshot.
type Kept struct {
	ID        string    `json:"id"`
	Label     string    `json:"label"`
	CreatedAt time.Time `json:"created_at"`
	Stack     []string  `json:"stack"` // newest first
}

// Pending is one change of a record that is under way.
type Pending struct {
	// Layer receives everything written up to now; it is made by renaming, or,
	// with Copied, by copying, and then an incomplete layer is dropped.
	Layer  string `json:"layer"`
	Copied bool   `json:"copied,omitempty"`
	// Fill is a layer whose copy becomes the written files, if there is no stack.
	Fill string `json:"fill,omitempty"`
	// Drop removes the layer afterwards: its content was given up.
	Drop  bool     `json:"drop,omitempty"`
	Stack []string `json:"stack"` // afterwards
	Keep  *Kept    `json:"keep,omitempty"`
}

// Has reports whether a snapshot is kept.
func (r *Record) Has(id string) bool {
	return slices.ContainsFunc(r.Kept, func(k Kept) bool { return k.ID == id })
}

// Store returns the directory of the layers of all sandboxes, beside the
// sandbox directory dir.
func Store(dir string) string {
	return filepath.Join(filepath.Dir(filepath.Dir(dir)), "frozen")
}

// names returns all layers that the record needs.
func (r *Record) names() []string {
	names := slices.Clone(r.Stack)
	for _, kept := range r.Kept {
		names = append(names, kept.Stack...)
	}
	if p := r.Pending; p != nil {
		names = append(append(names, p.Stack...), p.Layer, p.Fill)
		if p.Keep != nil {
			names = append(names, p.Keep.Stack...)
		}
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "" })
}

// Read returns the record of the sandbox whose directory is dir; an empty one
// if there is none. It finishes nothing.
func Read(dir string) (*Record, error) {
	r := &Record{Version: version}
	path := filepath.Join(dir, File)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "cannot read %q", path)
	}
	if err := seal.Decode(data, r); err != nil {
		return nil, fault.Wrap(fault.Internal, err, "cannot read %q", path).
			WithHint("if you changed it by hand, empty the \"checksum\" at its end")
	}
	if r.Version > version {
		return nil, fault.New(fault.Unsupported, "cannot use %q: it is version %d and this program knows %d", path, r.Version, version).
			WithHint("install a newer litterbox")
	}
	for _, name := range r.names() {
		if !isName(name) {
			return nil, fault.New(fault.Internal, "cannot use %q: it names the layer %q", path, name)
		}
	}
	return r, nil
}

// write replaces the record in one step.
func (r *Record) write(dir string) error {
	data, err := seal.Encode(r)
	path, temp := filepath.Join(dir, File), filepath.Join(dir, "."+File)
	if err == nil {
		err = os.WriteFile(temp, data, 0o600)
	}
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot write %q", path)
	}
	return nil
}

// newName makes a name that no layer has had; names sort by time.
func newName() string {
	random := make([]byte, 6)
	_, _ = rand.Read(random) // never fails (crypto/rand, Go 1.24)
	return time.Now().UTC().Format("20060102150405") + "-" + hex.EncodeToString(random)
}

// isName reports whether a layer's name is one of ours: a record that was
// edited by hand must not lead out of the store.
func isName(name string) bool {
	return name != "" && len(name) < 64 && strings.Trim(name, "0123456789abcdef-") == ""
}

// Needed lists the layers that the sandbox whose directory is dir and its
// snapshots stand on.
func Needed(dir string) ([]string, error) {
	r, err := Read(dir)
	if err != nil {
		return nil, err
	}
	return r.names(), nil
}
