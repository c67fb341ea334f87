package moby

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/container"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// security returns the options of a container besides those that have fields of
// their own. AppArmor's profile for containers refuses every mount, also those of
// a user namespace; our containers are confined by the filter and by the absence
// of capabilities.
func (s *session) security() ([]string, error) {
	var profile bytes.Buffer
	if err := json.Compact(&profile, []byte(container.Profile())); err != nil {
		return nil, fault.Wrap(fault.Internal, err, "cannot read the filter of system calls")
	}
	options := []string{"no-new-privileges", "apparmor=unconfined"}
	if s.order.Kind == container.Podman {
		path, err := s.profileFile(profile.Bytes())
		if err != nil {
			return nil, err
		}
		return append(options, "seccomp="+path, "unmask=ALL"), nil
	}
	return append(options, "seccomp="+profile.String()), nil
}

// profileFile writes the filter where the engine reads it: Podman takes a path on
// its own machine.
func (s *session) profileFile(profile []byte) (string, error) {
	dir := filepath.Join(s.order.Machine.State, "machines")
	path := filepath.Join(dir, "seccomp.json")
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		err = os.WriteFile(path+".new", profile, 0o600)
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return "", driver.Seal(err, "cannot write the filter of system calls")
	}
	return path, nil
}
