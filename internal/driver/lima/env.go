package lima

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/lima/limactl"
	"github.com/litterbox-sandbox/litterbox/internal/driver/remote"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// EnvName is the driver of live environments in a virtual machine.
const EnvName = "lima-env"

// EnvInstance is the virtual machine of all live environments. Lima mounts the home
// directory of its human in it, at its own path, and each environment sees its own
// project of that. No sandbox is ever in it.
const EnvInstance = "litterbox-env"

// thereEnv is the directory of its outpost, which is Lima's user's.
const thereEnv = "/var/lib/litterbox-env"

// EnvAt is that machine, for a state directory.
func EnvAt(root string, o Options) Machine {
	m := Machine{options: o, instance: EnvInstance, shown: homeOf(o)}
	if root != "" {
		m.dir = filepath.Join(machinesDir(root), m.instance)
	}
	return m
}

// homeOf is the home directory, without links: Lima mounts it where it really is.
func homeOf(o Options) (home string) {
	for _, entry := range o.Env {
		if value, ok := strings.CutPrefix(entry, "HOME="); ok {
			home = value
		}
	}
	if real, err := filepath.EvalSymlinks(home); err == nil {
		home = real
	}
	return home
}

// EnvDriver is the driver of live environments.
type EnvDriver struct {
	*remote.Driver
	options Options
}

// NewEnv makes the driver.
func NewEnv(o Options) *EnvDriver {
	traits := traits()
	traits.Live = true
	machine := func(stateDir string) remote.Machine {
		if stateDir == "" {
			return asked{EnvAt("", o)}
		}
		return EnvAt(envRoot(stateDir), o)
	}
	return &EnvDriver{Driver: remote.New(EnvName, traits, machine), options: o}
}

// envRoot is the directory of all state, by the directory of an environment in it:
// environments/sandboxes/ID, and environments/trash/… of a deleted one.
func envRoot(stateDir string) string { return filepath.Dir(driver.Root(stateDir)) }

// Acquire implements driver.Driver. What the environment needs of this machine has to
// be below the home directory.
func (d *EnvDriver) Acquire(ctx context.Context, spec driver.Spec) (driver.Lease, error) {
	live := spec.Workspace.Live
	if live == nil {
		return driver.Lease{}, fault.Wrap("", driver.ErrUnsupported, "cannot make a sandbox in the virtual machine of live environments").
			WithHint("litterbox create %s --driver %s", spec.Name, Name)
	}
	needed := []string{spec.Workspace.Path}
	if live.Git != nil {
		needed = append(needed, live.Git.Common, live.Git.Own)
	}
	home := homeOf(d.options)
	for _, path := range needed {
		if below, err := filepath.Rel(home, path); home == "" || err != nil || !filepath.IsLocal(below) || below == "." {
			return driver.Lease{}, fault.Wrap("", driver.ErrUnsupported, "cannot show %q in the virtual machine: only what is below %q is mounted there", path, home).
				WithHint("mv %s ~/", spec.Workspace.Path)
		}
	}
	return d.Driver.Acquire(ctx, spec)
}

// mountPatience is how long the mount of the home directory may come after the machine
// answers.
const mountPatience = time.Minute

// mounted waits until the home directory of this machine is there: Lima calls a
// machine ready before all of its mounts are.
func (m Machine) mounted(ctx context.Context, client limactl.Client) error {
	if m.shown == "" {
		return nil
	}
	if err := m.mark(shownFile, ""); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, mountPatience)
	defer cancel()
	for {
		err := client.Test(ctx, m.instance, filepath.Join(m.dir, shownFile))
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fault.Wrap("", driver.Joined(driver.ErrMountFailed, err), "cannot see %q in the virtual machine %q", m.shown, m.instance).
				WithHint("limactl stop %s, then repeat", m.instance)
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// shownFile is in the machine's directory here, below the home directory, and is seen
// in the machine when that is mounted.
const shownFile = "shown"
