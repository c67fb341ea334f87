package remote

import (
	"path/filepath"
	"runtime"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// ChildName is the driver of places in a [Child].
const ChildName = "child"

// Child is not really a machine: it is a directory of this one, and an outpost
// in a process of its own for each link. Everything is done as with a far
// machine, so it shows how one behaves without an engine or a second kernel.
// Nothing lists it: it is for tests.
type Child struct {
	Root string // its directory; empty for a machine that is only asked what it can do
}

// Name implements Machine.
func (c Child) Name() string { return "child " + c.Root }

// Relays implements Relayed, although its Dial is quick.
func (c Child) Relays() (root, outpost string) {
	if c.Root == "" {
		return "", ""
	}
	return filepath.Dir(filepath.Dir(c.Root)), ChildName
}

// NewChild makes the driver. Its machine is in the state directory of the
// sandboxes.
func NewChild() *Driver { return newChild(ChildName, false) }

// ChildEnvName is the driver of live environments in a [Child]: this machine's
// directories are its own, too.
const ChildEnvName = "child-env"

// NewChildEnv makes the driver.
func NewChildEnv() *Driver { return newChild(ChildEnvName, true) }

func newChild(name string, live bool) *Driver {
	traits := sandbox.Traits{
		System: "linux", Architecture: runtime.GOARCH,
		Files: sandbox.FilesCarried, Mounts: sandbox.MountsNone,
		Network: sandbox.NetworkStreams, Enforcer: "network namespace",
		Metrics:   []string{sandbox.MetricCPU, sandbox.MetricMemory, sandbox.MetricProcesses, sandbox.MetricThreads, sandbox.MetricUptime},
		KeepsHome: true, Live: live,
	}
	return New(name, traits, func(stateDir string) Machine {
		if stateDir == "" {
			return Child{}
		}
		return Child{Root: filepath.Join(driver.Root(stateDir), "machines", ChildName)}
	})
}
