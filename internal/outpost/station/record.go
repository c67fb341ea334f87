package station

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/outpost"
)

// record is what a station knows about a place, besides its files.
type record struct {
	Version  int      `json:"version"`
	Identity string   `json:"identity"`
	Layers   []string `json:"layers"` // that it uses, and its program
	Handle   []byte   `json:"handle,omitempty"`
	Whole    bool     `json:"whole,omitempty"` // it uses no layer
	Lent     []string `json:"lent,omitempty"`  // where it shows small files of the host
}

const recordName = "place.json"

// read fails with fs.ErrNotExist if there is no such place.
func (s *Station) read(id string) (record, error) {
	var r record
	data, err := os.ReadFile(filepath.Join(s.dir(id), recordName))
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fault.Wrap(fault.Internal, err, "cannot read the record of sandbox %q", id)
	}
	return r, nil
}

func (s *Station) write(dir string, r record) error {
	r.Version = 1
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	temp := filepath.Join(dir, "."+recordName)
	if err := os.WriteFile(temp, data, 0o600); err != nil {
		return driver.Seal(err, "cannot record the sandbox")
	}
	if err := os.Rename(temp, filepath.Join(dir, recordName)); err != nil {
		return driver.Seal(err, "cannot record the sandbox")
	}
	return nil
}

// its returns the record of the very files that the host means.
func (s *Station) its(p outpost.Place) (record, error) {
	r, err := s.read(p.Sandbox)
	if errors.Is(err, fs.ErrNotExist) || err == nil && r.Identity != p.Identity {
		return r, outpost.ErrOtherFiles
	}
	return r, err
}

// ids lists the places.
func (s *Station) ids() ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(s.Root, "sandboxes"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, driver.Seal(err, "cannot list the sandboxes")
	}
	var ids []string
	for _, entry := range entries {
		if entry.IsDir() && outpost.IsName(entry.Name()) {
			ids = append(ids, entry.Name())
		}
	}
	return ids, nil
}
