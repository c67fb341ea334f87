package image

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// Unpacked is one layer on disk, or the remains of an interrupted unpacking.
type Unpacked struct {
	Dir     string
	Partial bool
	Used    time.Time // when a sandbox was last started on it
}

// Unpacked lists the layers on disk.
func (s Store) Unpacked() ([]Unpacked, error) {
	entries, err := os.ReadDir(filepath.Join(s.Dir, "layers"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "cannot list the layers of images")
	}
	var found []Unpacked
	for _, entry := range entries {
		if !entry.IsDir() {
			continue // a lock
		}
		name := strings.TrimSuffix(entry.Name(), partialSuffix)
		one := Unpacked{Dir: filepath.Join(s.Dir, "layers", entry.Name()), Partial: name != entry.Name()}
		if info, err := os.Stat(filepath.Join(s.Dir, "layers", name+".lock")); err == nil {
			one.Used = info.ModTime()
		}
		found = append(found, one)
	}
	return found, nil
}

// Uses reports whether an image has the layer.
func (s Store) Uses(image sandbox.Image, layer Unpacked) bool {
	for _, id := range image.Layers {
		if s.layerDir(id) == strings.TrimSuffix(layer.Dir, partialSuffix) {
			return true
		}
	}
	return false
}

// Remove deletes a layer that no sandbox uses, unless another process is
// unpacking it.
func (s Store) Remove(ctx context.Context, layer Unpacked) (removed bool, err error) {
	brief, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	file := strings.TrimSuffix(layer.Dir, partialSuffix)
	unlock, err := lock(brief, file+".lock")
	if brief.Err() != nil && ctx.Err() == nil {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer unlock()
	// Out of its place first: half a layer is none.
	gone := file + partialSuffix
	if !layer.Partial {
		if err = os.RemoveAll(gone); err == nil {
			err = os.Rename(layer.Dir, gone)
		}
	}
	if err = errors.Join(err, os.RemoveAll(gone)); err != nil {
		return false, fault.Wrap(fault.Unavailable, err, "cannot remove the layer %q", layer.Dir)
	}
	return true, nil
}

// used notes that sandboxes start on these layers. A lock whose time cannot be
// set only makes a layer look older.
func (s Store) used(dirs []string) {
	now := time.Now()
	for _, dir := range dirs {
		_ = os.Chtimes(dir+".lock", now, now)
	}
}
