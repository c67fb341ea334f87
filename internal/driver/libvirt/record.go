package libvirt

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/seal"
)

// File is the handle of a sandbox's domain, in its state directory: it lets any
// process find the domain.
const File = "libvirt.json"

// handle says which domain a sandbox has.
type handle struct {
	Version int    `json:"version"`
	Driver  string `json:"driver"`
	URI     string `json:"uri"`
	UUID    string `json:"domain_uuid"`
	Image   string `json:"image"` // the directory of the image below its disk
	Dir     string `json:"dir"`   // of its disk, sockets and log

	// What the domain was given when it was made. Zero values are the driver's own
	// choice.
	CPUs   int           `json:"cpus,omitempty"`
	Memory int           `json:"memory_mib,omitempty"`
	Idle   time.Duration `json:"idle_ns,omitempty"`
}

// readHandle fails with driver.ErrMachineLost for a sandbox without a domain.
func readHandle(stateDir string) (handle, error) {
	var h handle
	data, err := os.ReadFile(filepath.Join(stateDir, File))
	if errors.Is(err, fs.ErrNotExist) {
		return h, driver.ErrMachineLost
	}
	if err == nil {
		err = seal.Decode(data, &h)
	}
	if err != nil {
		return h, fault.Wrap(fault.Internal, err, "cannot read which domain of libvirt the sandbox has")
	}
	return h, nil
}

func (h handle) write(stateDir string) error {
	data, err := seal.Encode(h)
	if err == nil {
		temp := filepath.Join(stateDir, "."+File)
		if err = os.WriteFile(temp, data, 0o600); err == nil {
			err = os.Rename(temp, filepath.Join(stateDir, File))
		}
	}
	if err != nil {
		return driver.Seal(err, "cannot record which domain of libvirt the sandbox has")
	}
	return nil
}

// newUUID returns a random UUID (RFC 9562, version 4).
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails, crypto/rand
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
