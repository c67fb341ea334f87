// Package driver is the boundary: a driver makes and runs the place a sandbox
// lives in, and gives a wire into it. The guest at the other end of the wire
// does the rest (commands, files, services), so those are written once.
//
// It deliberately knows nothing of git, branches or policy. Read [Driver]
// first; package drivertest holds the contract as checks.
package driver

import (
	"context"
	"net"
	"slices"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// Driver makes, finds and ends places. All methods are safe for concurrent
// use on different leases; the engine serializes calls on one lease.
//
// To add a driver: 1. implement this interface in internal/driver/<name>, with
// one more for what its children do, 2. add it to the table of the program that
// keeps its sandboxes (internal/app/child, or internal/app where it needs a
// client library), 3. join the contract (drivertest) in a test that can start it,
// kill its guest, deafen it and count its places, 4. add its lines to the policy
// in internal/arch, 5. describe it in docs/architecture/places.md and, where its places
// isolate otherwise, in docs/security.md, 6. make docs, for docs/packages.md and
// the names that commands and configuration know.
type Driver interface {
	// Name is the name that users type and records hold, for example "namespace".
	Name() string

	// Traits describes the places that this driver makes. It looks at nothing; the
	// traits of one place are in its lease.
	Traits() sandbox.Traits

	// Capabilities reports what this driver can do on this machine. It asks the
	// kernel and tries nothing. It is called before optional operations, not by
	// every command.
	Capabilities() Capabilities

	// Ownership reports who owns files inside and on disk. It is pure and cheap,
	// and is called before layers and the upper directory are made.
	Ownership(sandboxID string) Ownership

	// Carriage reports how workspaces whose files lie below dir can be carried
	// here and, if not by an overlay, why. It may try, and remember its findings
	// below dir. It is called once for each sandbox, when it is created.
	Carriage(ctx context.Context, dir string) (how sandbox.Carriage, why string)

	// Acquire makes a place for spec and returns once its guest answers. On
	// error nothing is left behind. Calling it again for a sandbox whose
	// place still runs fails with ErrLeaseUnavailable.
	Acquire(ctx context.Context, spec Spec) (Lease, error)

	// Attach finds the running place of a recorded lease, from any process,
	// any number of times. It fails with ErrMachineLost only when the place is
	// known to be gone. Any other obstacle, also one of this process alone, is
	// ErrUnreachable, and the place goes on.
	Attach(ctx context.Context, lease Lease) error

	// Dial opens a fresh wire into the place: one byte stream that the guest
	// answers. It fails as Attach does. The end of a wire is never the end of a
	// place: the keeper dials again, and a new keeper dials while the old one's
	// wire still hangs.
	Dial(ctx context.Context, lease Lease) (net.Conn, error)

	// Pause freezes every process of the place, the guest too; Resume lets them go
	// on, except those that were stopped before. Both are idempotent, work from
	// any process, and need no keeper. A freeze that does not take in time (some
	// seconds, or the end of ctx) fails with ErrPauseTimeout and leaves the place
	// running. In a paused place Attach succeeds and Dial's connection is not
	// answered.
	Pause(ctx context.Context, lease Lease, reason string) error
	Resume(ctx context.Context, lease Lease) error

	// Limit puts limits in force on a running place, replacing earlier ones; Acquire does
	// the same with Spec.Limits (Lease.InForce). It returns what keeps each limit that the
	// driver keeps, by the limit's name (sandbox.Limit.By); the others are the keeper's to
	// supervise or to refuse. Repeating the same limits is cheap and changes nothing. A
	// limit that cannot change while the place runs is an ErrUnsupported that says so, and
	// then nothing has changed.
	Limit(ctx context.Context, lease Lease, limits sandbox.Limits) (InForce, error)

	// Snapshotter answers ErrUnsupported for what Capabilities.Snapshots and Fork
	// do not declare; a driver without any embeds [NoSnapshots].
	Snapshotter

	// Recover repairs the remains of the lease's place after a crash: processes,
	// mounts, sockets. Afterwards either Attach works or Acquire does; the
	// returned lines say what was done. Idempotent. A place that exists and does
	// not answer is ErrUnreachable and stays as it is. A lease without a handle
	// was never recorded: whatever runs for its sandbox is ended.
	Recover(ctx context.Context, lease Lease) ([]string, error)

	// Destroy ends the place, a paused one too. Without force it waits some
	// seconds for an end requested over the wire (OpShutdown) before it insists;
	// the files of the sandbox are not the driver's to delete. A place that is
	// already gone is not an error. A lease without a handle is one whose Acquire
	// never returned: its remains are removed.
	Destroy(ctx context.Context, lease Lease, force bool) error

	// CollectMetrics measures what the place uses at this moment.
	CollectMetrics(ctx context.Context, lease Lease) (Metrics, error)
}

// Capabilities are declared by a driver; undeclared operations answer
// ErrUnsupported. Each has a check in the contract, and a defect in package fake
// that fails it.
type Capabilities struct {
	sandbox.Traits
	Pause     bool      `json:"pause"`
	Snapshots Snapshots `json:"snapshots"`
	Fork      bool      `json:"fork"`
	// Goldens: the driver is a GoldenKeeper.
	Goldens bool     `json:"goldens,omitempty"`
	Limits  []string `json:"limits"` // names of [limits] that the driver keeps by itself here
	// FSMonitor is a program inside that tells git what changed above the layers
	// of a workspace (package fsmonitor), or empty.
	FSMonitor string `json:"fs_monitor,omitempty"`
	Isolation []Tier `json:"isolation"` // the tiers of this machine, strongest first
}

// Full reports whether a place with full isolation is available.
func (c Capabilities) Full() bool {
	return slices.ContainsFunc(c.Isolation, func(t Tier) bool { return t.Isolation == sandbox.IsolationFull && t.Available })
}

// Tier is one level of isolation with the obstacles to it here.
type Tier struct {
	Isolation sandbox.Isolation `json:"isolation"`
	Available bool              `json:"available"`
	Missing   []string          `json:"missing,omitempty"` // one sentence each
	Mend      []string          `json:"mend,omitempty"`    // exact commands
	// Lacks lists what a tier below the full one does not isolate, one sentence
	// each.
	Lacks []string `json:"lacks,omitempty"`
}

// Spec is everything a driver needs to make a place. Paths are absolute.
type Spec struct {
	SandboxID string
	Name      string            // also the host name inside
	StateDir  string            // directory of this sandbox; sockets, upper and home lie below
	Workspace Workspace         // the project as layers
	Home      string            // path of HOME inside
	User      User              // who the inner user is
	Mounts    []Mount           // read-only host directories
	Lent      []Lent            `json:",omitempty"` // small files of the host, for drivers that lend
	Caches    []Cache           // package caches of the host, below the sandbox's own
	Base      *Base             // the root file system; nil for the host's own userland
	System    *System           // the sandbox's own packages, above Base; may be nil
	Env       map[string]string // complete environment of every command
	Limits    sandbox.Limits    // what it may use
	Nested    bool              // security.nested: inner user namespaces allowed
	VM        VM                `json:"vm,omitzero"` // what its virtual machine is given, in a driver that makes some
	Streams   bool              // carry connections as streams even where descriptors can be passed; for tests of that way
	Degraded  bool              // the degraded tier is accepted; without it a degraded driver answers ErrUnsupported
	GuestKey  []byte            // the guest's private host key (OpenSSH PEM)
	HostKey   []byte            // public key the keeper shows (authorized_keys line)

	// Program is a path that lets a child of this process execute the guest's
	// program; empty means this very program.
	Program string `json:"-"`

	// Core is how large a core dump of a process inside may be at first, in bytes,
	// for a driver whose places inherit the keeper's limit, which allows none; nil
	// leaves it as it is.
	Core *uint64 `json:"-"`

	// Progress, when not nil, is told by Acquire how far a long step has come: what
	// it does, and how much of how much is done. It must not block.
	Progress func(what string, done, total int) `json:"-"`

	// Early, when not nil, is called by Acquire at most once, with a stream on
	// which the guest will answer as soon as it serves: earlier writes wait for
	// it. A driver that has no such stream does not call it. When Acquire fails
	// the stream ends. It must not block.
	Early func(net.Conn) `json:"-"`
}

// Ownership tells the engine who owns the files of a sandbox.
type Ownership struct {
	UID, GID int // of the inner user, as seen inside
	// ChownLayers asks for layers that are owned by UID and GID on disk.
	ChownLayers bool
	// UpperUID and UpperGID own the writable files on disk; -1 means the user who
	// runs litterbox.
	UpperUID, UpperGID int
}

// Workspace is the project's tree: read-only layers, topmost first, and the
// directory that receives every change. Without layers that directory exists
// and holds everything (sandbox.CarriageCopy).
type Workspace struct {
	Path   string   // its path inside: its original host path
	Layers []string // read-only, topmost first; none for a copy
	Upper  string   // receives changes; readable by the host afterwards
	Work   string   // scratch of the overlay, same file system as Upper

	// Live, when not nil, makes the host's own directory at Path the workspace.
	// There are no layers then, and nothing is written to Upper.
	Live *Live `json:"live,omitempty"`
}

// User is the inner user.
type User struct {
	Name  string
	UID   int // inside
	GID   int
	Shell string
}

// Cache is a directory of the host that a sandbox sees at Target and may write
// there: its writes are its own, and the host's directory never changes. Where
// that is not possible, the cache is read-only inside, and a file CacheReadOnly
// in the directory caches/<Name> of the state directory says why.
type Cache struct {
	Name   string
	Source string
	Target string
	Hidden []string // below it, empty inside: directories with a slash at the end, and files
	Built  bool     // compiled files, not downloaded ones
}

// CacheReadOnly is the file that says why a package cache cannot be written.
const CacheReadOnly = "read-only"

// Base is a root file system of a sandbox's own.
type Base struct {
	// Image is the id of an image that the driver's own engine has, at the address
	// Engine (Imager). There are no layers then. Shown is its name. Runtime is the
	// container's; empty means the engine's default.
	Image, Engine, Shown, Runtime string

	// Layers are read-only directories, topmost first, with whiteouts as
	// overlayfs has them.
	Layers []string
	// Owned tells that the layers belong to the inner user's id on disk, as
	// those of a workspace do with Ownership.ChownLayers. Otherwise they belong to
	// other users, and are shown as they are.
	Owned bool
	// UID and GID own everything in layers with Owned, on disk. Only a place that
	// installs packages needs them: its own inner id differs.
	UID, GID int
	// WorkingDir is created when it is missing; it may be empty.
	WorkingDir string
}

// System puts packages of the sandbox's own below a place, as frozen layers
// like those of its own writes (package frozen). They are read-only, except in
// a place that installs some.
type System struct {
	// Foundation is the layer above the host's own userland (package userland);
	// "" when Spec.Base has all that is needed.
	Foundation string
	// Install makes a place for a package manager: the inner user is 0, system
	// directories are writable, and nothing else persists.
	Install bool
}

// Mount is a host directory or file that is read-only inside, or a directory
// that can be written.
type Mount struct {
	Source   string
	Target   string
	Writable bool // a directory; no part of Source is a symbolic link
}

// Lease is what the driver needs to find the place again; Handle is the
// driver's own, opaque to all others.
type Lease struct {
	ID        string
	SandboxID string
	StateDir  string
	Handle    []byte
	// InForce is what Limit would return for Spec.Limits. Only Acquire sets it.
	InForce InForce
	// Traits are the traits of this place. Only Acquire sets them.
	Traits sandbox.Traits
}

// InForce says what keeps a limit, by the limit's name.
type InForce map[string]string

// Metrics of one place at one moment. Negative values mean: not measured.
type Metrics struct {
	CPU         time.Duration `json:"cpu_ns"`        // since it started
	Memory      int64         `json:"memory_bytes"`  // without caches that the kernel can drop
	Scratch     int64         `json:"scratch_bytes"` // of memory: in files that no process holds
	Processes   int           `json:"processes"`
	Threads     int           `json:"threads"` // of all processes together, as the limit pids counts them
	Uptime      time.Duration `json:"uptime_ns"`
	Read        int64         `json:"read_bytes"`    // from block devices, since it started
	Written     int64         `json:"written_bytes"` // to block devices
	OOMKills    int64         `json:"oom_kills"`     // processes that the kernel ended at the limit of memory
	RefusedPIDs int64         `json:"refused_pids"`  // forks that failed at the limit of pids
	// Unlimited is set when another program has taken limits out of force, as a
	// service manager does that rearranges control groups. Limit repairs that.
	Unlimited bool `json:"unlimited,omitempty"`
}

// Unmeasured returns metrics of which nothing is known.
func Unmeasured() Metrics {
	return Metrics{CPU: -1, Memory: -1, Scratch: -1, Processes: -1, Threads: -1, Uptime: -1, Read: -1, Written: -1, OOMKills: -1, RefusedPIDs: -1}
}
