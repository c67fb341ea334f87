package container

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/seal"
)

// Record says which machine a sandbox is in. It lies in the sandbox's directory
// and never changes: a newer image is another machine.
type Record struct {
	Version int    `json:"version"`
	Kind    Kind   `json:"kind,omitempty"`
	Address string `json:"address"`           // of the engine
	Name    string `json:"name"`              // of the container and of its volume
	Image   string `json:"image"`             // its id
	Shown   string `json:"shown"`             // the image as it was named
	Runtime string `json:"runtime,omitempty"` // of the container; empty for the engine's default
	State   string `json:"state"`             // the state directory
}

// MeetingPath is where a container has the directory that its host knows as
// Record.Meeting.
const MeetingPath = "/.litterbox-meeting"

// Meeting is the directory of sockets at which this machine awaits a container of
// its own kernel. An engine of another machine, and one behind a wire, has none; nor
// does Podman for a path with a comma, at which its API divides the words of a mount.
func (r Record) Meeting() string {
	if !strings.HasPrefix(r.Address, "unix://") || r.Kind == Podman && strings.Contains(r.State, ",") {
		return ""
	}
	return filepath.Join(r.State, "machines", r.Name)
}

// File is the name of the record.
const File = "container.json"

// The labels of our objects. An engine lists by them, and nothing without them is
// ever removed.
const (
	LabelState = "dev.litterbox.state" // the state directory
	LabelImage = "dev.litterbox.image" // Record.Image
	LabelShown = "dev.litterbox.shown" // Record.Shown
)

// recordOf names the machine for an image of an engine.
func recordOf(kind Kind, state string, base driver.Base) Record {
	host, _ := os.ReadFile("/etc/machine-id") // the same engine may serve several hosts; not every host has one
	sum := sha256.New()
	fmt.Fprintf(sum, "%s\n%s\n%s\n", host, state, base.Image)
	if base.Runtime != "" {
		fmt.Fprintf(sum, "%s\n", base.Runtime)
	}
	return Record{
		Version: 1, Kind: kind, Address: base.Engine, Name: "litterbox-" + hex.EncodeToString(sum.Sum(nil))[:16],
		Image: base.Image, Shown: base.Shown, Runtime: base.Runtime, State: state,
	}
}

// readRecord fails with fs.ErrNotExist for a sandbox that has not begun anywhere.
func readRecord(stateDir string) (Record, error) {
	var r Record
	data, err := os.ReadFile(filepath.Join(stateDir, File))
	if err != nil {
		return r, err
	}
	if err := seal.Decode(data, &r); err != nil {
		return r, fault.Wrap(fault.Internal, err, "cannot read in which container the sandbox is")
	}
	return r, nil
}

func (r Record) write(stateDir string) error {
	data, err := seal.Encode(r)
	if err != nil {
		return err
	}
	temp := filepath.Join(stateDir, "."+File)
	if err := os.WriteFile(temp, data, 0o600); err != nil {
		return driver.Seal(err, "cannot record in which container the sandbox is")
	}
	if err := os.Rename(temp, filepath.Join(stateDir, File)); err != nil {
		return driver.Seal(err, "cannot record in which container the sandbox is")
	}
	return nil
}
