// Package namespace is the embedded default driver: a place made of Linux
// namespaces and an overlay, by an ordinary user, with nothing installed.
//
// This package is the parent side. Package stage is what happens in the child,
// step by step; package seccomp decides which system calls remain. This package
// does not know git: layers come ready from the engine.
//
// Start reading at [Driver.Acquire].
package namespace

import (
	"runtime"

	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// Name of the driver in records and listings.
const Name = "namespace"

// Driver implements driver.Driver. The zero value is ready.
type Driver struct {
	// Copy makes Carriage answer as if no overlay could be mounted, to test that
	// case.
	Copy bool
	// Degraded makes Try answer as if the full tier were not available, to test
	// the other one.
	Degraded bool
}

// Name implements driver.Driver.
func (Driver) Name() string { return Name }

// Traits implements driver.Driver.
func (Driver) Traits() sandbox.Traits {
	return sandbox.Traits{
		System: runtime.GOOS, Architecture: runtime.GOARCH,
		Files: sandbox.FilesShared, Mounts: sandbox.MountsAny,
		Network: sandbox.NetworkDescriptors, Enforcer: "network namespace",
		Metrics:   []string{sandbox.MetricCPU, sandbox.MetricMemory, sandbox.MetricProcesses, sandbox.MetricThreads, sandbox.MetricUptime},
		KeepsHome: true,
		Live:      true,
	}
}

// Finding is one of Probe's findings about this machine.
type Finding struct {
	Name   string
	OK     bool
	Needed bool // the full tier needs it
	Found  string
	Mend   string // exact command
}
