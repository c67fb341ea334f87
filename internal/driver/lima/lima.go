// Package lima is the drivers of places in virtual machines of Lima's: one instance
// for all sandboxes (driver lima), or one for each, a copy of a golden instance
// (driver lima-vm), and one for all live environments (driver lima-env). Instances
// make, start and repair themselves. Nothing of the host is mounted in those of
// sandboxes, and no port of any is forwarded; places in them are made by
// the namespace driver there, through an outpost (package remote).
//
// limactl makes and starts the machines (package limactl); a byte stream into one is
// the standard input and output of Lima's SSH. Start reading at [Machine.Ensure].
package lima

import (
	"context"
	"path/filepath"
	"runtime"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/lima/limactl"
	"github.com/litterbox-sandbox/litterbox/internal/driver/remote"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// Name is the driver.
const Name = "lima"

// Instance is the virtual machine of all sandboxes, as Lima calls it.
const Instance = "litterbox"

// there is the directory of the outpost in the machine. Only root can enter it.
const there = "/var/lib/litterbox"

// Options are what a machine needs from the program that uses it.
type Options struct {
	// Env is the environment in which limactl and ssh run.
	Env []string
	// Override is a file of Lima's format that is joined with the configuration:
	// below the settings that keep the host apart, above the defaults. It may be
	// missing.
	Override string
	// Outpost is the program of outposts for a system and an architecture.
	Outpost func(system, architecture string) (remote.Program, error)
}

// New makes the driver.
func New(o Options) *remote.Driver {
	return remote.New(Name, traits(), func(stateDir string) remote.Machine {
		if stateDir == "" {
			return asked{At("", o)}
		}
		return At(driver.Root(stateDir), o)
	})
}

// traits are those of every place in a virtual machine.
func traits() sandbox.Traits {
	return sandbox.Traits{
		System: "linux", Architecture: runtime.GOARCH,
		Files: sandbox.FilesCarried, Mounts: sandbox.MountsNone,
		Network: sandbox.NetworkStreams, Enforcer: "network namespace",
		Metrics:   []string{sandbox.MetricCPU, sandbox.MetricMemory, sandbox.MetricProcesses, sandbox.MetricThreads, sandbox.MetricUptime},
		KeepsHome: true,
	}
}

// Machine is a virtual machine. Its methods are safe for concurrent use, from
// any process.
type Machine struct {
	options  Options
	instance string
	dir      string // of what is known about it here; empty when nothing is

	shown  string   // the directory of this machine that is mounted at its own path; empty for none
	golden *Machine // the instance that it is a copy of; nil for one that is made from an image
	id     string   // of the one sandbox that it is for; empty without a golden
}

// At is the machine of a state directory.
func At(root string, o Options) Machine {
	m := Machine{options: o, instance: Instance}
	if root != "" {
		m.dir = filepath.Join(machinesDir(root), m.instance)
	}
	return m
}

// machinesDir has a directory for each instance of a state directory.
func machinesDir(root string) string { return filepath.Join(root, "machines", Name) }

// Name implements remote.Machine.
func (m Machine) Name() string { return "lima " + m.instance }

func (m Machine) limactl(note func(string)) limactl.Client {
	return limactl.Client{Env: m.options.Env, Note: note}
}

// asked is a machine that is only asked what it can do: it is neither made nor
// started.
type asked struct{ Machine }

// Ensure implements remote.Machine.
func (asked) Ensure(context.Context) error { return nil }

// Bounds on how long a machine may take. The first boot of a cloud image runs
// its set-up, and an emulated processor is some twenty times slower.
const (
	bootPatience = 15 * time.Minute
	stopPatience = 4 * time.Minute // limactl gives up after three
)

// architecture is the machine's, in Go's names: Lima's default is the host's.
func (m Machine) architecture() string { return runtime.GOARCH }
