package libvirt

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

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/seal"
)

// KeptFile is the record of a domain's snapshots, in the state directory of its
// sandbox. libvirt has one of its own, which ends with the domain's definition; what
// was kept itself is in the domain's disk.
const KeptFile = "libvirt-snapshots.json"

// keptRecord lists snapshots, oldest first. Pending is one that is being taken or
// deleted: after a kill the next call removes it. Copying says that the domain stands
// still for a copy of its disk: after a kill the next call lets it go on.
type keptRecord struct {
	Version int    `json:"version"`
	Pending string `json:"pending,omitempty"`
	Copying bool   `json:"copying,omitempty"`
	Kept    []kept `json:"kept"`
}

// kept is one snapshot.
type kept struct {
	ID        string    `json:"id"`
	Label     string    `json:"label"`
	CreatedAt time.Time `json:"created_at"`
	On        bool      `json:"on"`               // the domain was on: its memory is part of it
	Handle    []byte    `json:"handle,omitempty"` // of the place that ran in it
	Bytes     int64     `json:"bytes"`            // that the disk took more afterwards
	XML       string    `json:"xml"`              // libvirt's description
}

func (k kept) snapshot() driver.Snapshot {
	return driver.Snapshot{ID: k.ID, Label: k.Label, CreatedAt: k.CreatedAt, Memory: len(k.Handle) > 0, Bytes: k.Bytes}
}

// find returns the place of a snapshot in the record, -1 for an unknown one.
func (r *keptRecord) find(id string) int {
	return slices.IndexFunc(r.Kept, func(k kept) bool { return k.ID == id })
}

// readKept is empty for a sandbox without snapshots.
func readKept(stateDir string) (keptRecord, error) {
	r := keptRecord{Version: 1}
	data, err := os.ReadFile(filepath.Join(stateDir, KeptFile))
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err == nil {
		err = seal.Decode(data, &r)
	}
	if err != nil {
		return r, fault.Wrap(fault.Internal, err, "cannot read which snapshots the sandbox's domain has")
	}
	return r, nil
}

func (r *keptRecord) write(stateDir string) error {
	data, err := seal.Encode(*r)
	if err == nil {
		temp := filepath.Join(stateDir, "."+KeptFile)
		if err = os.WriteFile(temp, data, 0o600); err == nil {
			err = os.Rename(temp, filepath.Join(stateDir, KeptFile))
		}
	}
	if err != nil {
		return driver.Seal(err, "cannot record which snapshots the sandbox's domain has")
	}
	return nil
}

// newID returns the id of a new snapshot, which is also its name in the disk.
func newID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails, crypto/rand
	return hex.EncodeToString(b[:])
}

// orphaned returns libvirt's description of a snapshot without the snapshot before
// it, which may be deleted by the time of use.
func orphaned(text string) string {
	before, rest, found := strings.Cut(text, "<parent>")
	if _, after, ends := strings.Cut(rest, "</parent>"); found && ends {
		return before + after
	}
	return text
}
