package limactl

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// Status is an instance's state according to Lima.
type Status string

// The states of an instance. Lima may know others.
const (
	Running       Status = "Running"
	Stopped       Status = "Stopped"
	Broken        Status = "Broken"
	Uninitialized Status = "Uninitialized"
	Installing    Status = "Installing"
)

// Instance is one virtual machine of Lima's, as `limactl list --json` prints it.
type Instance struct {
	Name          string   `json:"name"`
	Hostname      string   `json:"hostname"`
	Status        Status   `json:"status"`
	Dir           string   `json:"dir"`
	VMType        string   `json:"vmType"`
	Arch          string   `json:"arch"`
	CPUs          int      `json:"cpus"`
	Memory        int64    `json:"memory"` // bytes
	Disk          int64    `json:"disk"`   // bytes
	SSHConfigFile string   `json:"sshConfigFile"`
	SSHLocalPort  int      `json:"sshLocalPort"`
	Errors        []string `json:"errors"`
	Protected     bool     `json:"protected"`
	LimaVersion   string   `json:"limaVersion"`
	Config        Config   `json:"config"`
}

// Config is the part of an instance's configuration that says how much of the
// host it can reach, after Lima has joined all of its sources.
type Config struct {
	Plain  bool `json:"plain"`
	Mounts []struct {
		Location   string `json:"location"`
		MountPoint string `json:"mountPoint"`
		Writable   bool   `json:"writable"`
	} `json:"mounts"`
	PortForwards []struct {
		GuestPortRange [2]int `json:"guestPortRange"`
		HostPortRange  [2]int `json:"hostPortRange"`
		GuestSocket    string `json:"guestSocket"`
		Static         bool   `json:"static"`
		Ignore         bool   `json:"ignore"`
		Reverse        bool   `json:"reverse"`
	} `json:"portForwards"`
	SSH struct {
		ForwardAgent bool `json:"forwardAgent"`
		ForwardX11   bool `json:"forwardX11"`
	} `json:"ssh"`
	Networks []struct {
		Lima   string `json:"lima"`
		Socket string `json:"socket"`
		VZNAT  bool   `json:"vzNAT"`
	} `json:"networks"`
	Param map[string]string `json:"param"`
}

// List returns the existing instances.
func (c Client) List(ctx context.Context) ([]Instance, error) {
	out, err := c.run(ctx, call{doing: "list the virtual machines of Lima"}, "list", "--json")
	if err != nil {
		return nil, err
	}
	all, err := parse(out)
	if err != nil {
		return nil, fault.Wrap("", fault.Wrap("", ErrStrange, "%v", err), "cannot read what limactl lists")
	}
	return all, nil
}

// Find returns the instance with a name. It fails with [ErrNoInstance] when
// there is none.
func (c Client) Find(ctx context.Context, name string) (Instance, error) {
	all, err := c.List(ctx)
	if err != nil {
		return Instance{}, err
	}
	for _, one := range all {
		if one.Name == name {
			return one, nil
		}
	}
	return Instance{}, fault.Wrap("", ErrNoInstance, "cannot find the virtual machine %q", name)
}

// parse reads JSON Lines: one object on each line, not an array. Unknown fields
// are Lima's own.
func parse(data []byte) ([]Instance, error) {
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, most)
	var all []Instance
	for lines.Scan() {
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		var one Instance
		if err := json.Unmarshal(line, &one); err != nil {
			return nil, fmt.Errorf("line %d: %w", len(all)+1, err)
		}
		if err := one.check(); err != nil {
			return nil, fmt.Errorf("line %d: %w", len(all)+1, err)
		}
		all = append(all, one)
	}
	return all, lines.Err()
}

// check verifies the fields that are used: paths are opened, and names are arguments.
func (i Instance) check() error {
	switch {
	case !validName(i.Name):
		return fmt.Errorf("%q is not the name of an instance", i.Name)
	case i.Status == "" && len(i.Errors) == 0:
		return fmt.Errorf("instance %q has no status", i.Name)
	case !filepath.IsAbs(i.Dir) || filepath.Clean(i.Dir) != i.Dir || filepath.Base(i.Dir) != i.Name:
		return fmt.Errorf("instance %q has no directory of its own: %q", i.Name, i.Dir)
	case i.SSHConfigFile != "" && filepath.Dir(i.SSHConfigFile) != i.Dir:
		return fmt.Errorf("instance %q has its SSH configuration elsewhere: %q", i.Name, i.SSHConfigFile)
	case i.CPUs < 0 || i.Memory < 0 || i.Disk < 0 || i.SSHLocalPort < 0 || i.SSHLocalPort > 65535:
		return errors.New("a number is not one of an instance")
	}
	return nil
}

// validName is Lima's rule (containerd's identifiers).
func validName(name string) bool {
	if name == "" || len(name) > 76 || strings.HasPrefix(name, ".") {
		return false
	}
	for _, r := range name {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.", r)) {
			return false
		}
	}
	return name[0] != '-' && name[0] != '_'
}
