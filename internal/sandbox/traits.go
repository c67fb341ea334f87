package sandbox

import "slices"

// Traits are the properties of a place. A driver gives them for the places that it
// makes, and a lease for its own place: they may differ where the machine of a
// place matters.
type Traits struct {
	System       string `json:"system"`       // of what runs inside, as Go names it: linux
	Architecture string `json:"architecture"` // likewise: amd64
	Files        Files  `json:"files"`
	Mounts       Mounts `json:"mounts"`
	// Lends: small files of the host are shown where nothing of it is mounted, as
	// copies that the host renews.
	Lends   bool    `json:"lends,omitempty"`
	Network Network `json:"network"`
	// Enforcer makes sure that nothing leaves by another way than Network, or at
	// all: "network namespace", "system call filter".
	Enforcer string `json:"enforcer"`
	// Metrics are measured in every place; others may be.
	Metrics []string `json:"metrics"`
	// KeepsHome: files in HOME outlive a stop. The workspace always does.
	KeepsHome bool `json:"keeps_home"`
	// Live: a directory of the host itself can be the workspace.
	Live bool `json:"live"`
}

// Measures reports whether a metric is measured in every place.
func (t Traits) Measures(metric string) bool { return slices.Contains(t.Metrics, metric) }

// ShowsFiles reports whether a place can show small files of the host, as they are
// now: the roots that it trusts among them.
func (t Traits) ShowsFiles() bool { return t.Mounts == MountsAny || t.Lends }

// Files says where the files of a workspace lie.
type Files string

// Where files lie.
const (
	FilesShared  Files = "shared"  // on this machine's disk: the host reads what was written
	FilesCarried Files = "carried" // in the place's own machine
)

// Mounts says which parts of the host a place can show.
type Mounts string

// What can be mounted.
const (
	MountsAny      Mounts = "any"
	MountsSamePath Mounts = "same-path" // shown at its path on the host: nothing is mounted
	MountsNone     Mounts = "none"
)

// Network says how connections leave a place.
type Network string

// How connections leave.
const (
	NetworkDescriptors Network = "descriptors" // as descriptors, where a kernel is shared
	NetworkStreams     Network = "streams"     // as streams of the wire
	NetworkNone        Network = "none"        // not at all
)

// The metrics that a driver can promise.
const (
	MetricCPU       = "cpu"
	MetricMemory    = "memory"
	MetricProcesses = "processes"
	MetricThreads   = "threads"
	MetricUptime    = "uptime"
)
