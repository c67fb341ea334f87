package image

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// record is the image that a name stood for. Version is that of this form.
type record struct {
	Version int           `json:"version"`
	Stamp   string        `json:"stamp,omitempty"` // of an archive's file
	Image   sandbox.Image `json:"image"`
	At      time.Time     `json:"at"`
}

const recordVersion = 1

func (s Store) recordFile(source Source) string {
	sum := sha256.Sum256([]byte(source.String()))
	return filepath.Join(s.Dir, "names", hex.EncodeToString(sum[:16])+".json")
}

// recall finds the image that a name stood for. A layout is read each time, which
// costs two small files; an archive is not, as long as its file stays the same.
func (s Store) recall(source Source) (sandbox.Image, bool) {
	if source.Kind == Layout {
		return sandbox.Image{}, false
	}
	content, err := os.ReadFile(s.recordFile(source))
	if err != nil {
		return sandbox.Image{}, false
	}
	var r record
	if json.Unmarshal(content, &r) != nil || r.Version != recordVersion || r.Image.Reference != source.String() ||
		len(r.Image.Layers) == 0 || r.Stamp != stamp(source) {
		return sandbox.Image{}, false
	}
	return r.Image, true
}

func (s Store) remember(source Source, image sandbox.Image) error {
	if source.Kind == Layout {
		return nil
	}
	file := s.recordFile(source)
	content, err := json.MarshalIndent(record{Version: recordVersion, Stamp: stamp(source), Image: image, At: time.Now().UTC()}, "", "  ")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(file), 0o700)
	}
	if err == nil {
		err = writeWhole(file, append(content, '\n'))
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot record the image %s", source)
	}
	return nil
}

// stamp changes with the file of an archive.
func stamp(source Source) string {
	if source.Kind != Archive {
		return ""
	}
	file, _ := source.split(source.Path)
	info, err := os.Stat(file)
	if err != nil {
		return "missing"
	}
	return fmt.Sprintf("%d %d", info.Size(), info.ModTime().UnixNano())
}

// writeWhole replaces a file at once.
func writeWhole(file string, content []byte) error {
	temporary, err := os.CreateTemp(filepath.Dir(file), ".name-*")
	if err != nil {
		return err
	}
	_, err = temporary.Write(content)
	if err = errors.Join(err, temporary.Close()); err == nil {
		err = os.Rename(temporary.Name(), file)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(temporary.Name()))
	}
	return err
}
