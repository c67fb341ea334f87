// Package landlock is the driver of the degraded tier: a place for machines
// without user namespaces. Its processes run on the host's own file system and
// process table, under a Landlock domain and a filter of system calls; nothing
// is mounted, and there is no network at all.
//
// It is weaker than package namespace in ways that docs/security.md lists, and
// is used only when asked for (--allow-degraded). It refuses what it cannot do.
//
// Start reading at [Driver.Acquire]; the walls are in package confine.
package landlock

import (
	"context"
	"runtime"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// Name of the driver in records and listings.
const Name = "landlock"

// Driver implements driver.Driver. The zero value is ready.
type Driver struct{ driver.NoSnapshots }

// Name implements driver.Driver.
func (Driver) Name() string { return Name }

// Traits implements driver.Driver.
func (Driver) Traits() sandbox.Traits {
	return sandbox.Traits{
		System: runtime.GOOS, Architecture: runtime.GOARCH,
		Files: sandbox.FilesShared, Mounts: sandbox.MountsSamePath,
		Network: sandbox.NetworkNone, Enforcer: "system call filter",
		Metrics:   []string{sandbox.MetricCPU, sandbox.MetricMemory, sandbox.MetricProcesses, sandbox.MetricThreads, sandbox.MetricUptime},
		KeepsHome: true,
	}
}

// Ownership implements driver.Driver: everything belongs to the user who runs this.
func (Driver) Ownership(string) driver.Ownership { return ownership() }

// Carriage implements driver.Driver.
func (Driver) Carriage(context.Context, string) (sandbox.Carriage, string) {
	return sandbox.CarriageCopy, "the degraded tier mounts nothing"
}

// Pause is not declared: without namespaces a process that is just being made
// could be missed.
func (Driver) Pause(context.Context, driver.Lease, string) error { return driver.ErrUnsupported }

// Resume is not declared.
func (Driver) Resume(context.Context, driver.Lease) error { return driver.ErrUnsupported }
