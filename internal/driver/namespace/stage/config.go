// Package stage is the child side of the namespace driver: it turns a fresh
// set of namespaces into a sandbox and then becomes the guest.
//
// As an ordinary user one process, root of its own user namespace, assembles
// the root file system and enters it. Run by root, the keeper itself, real
// root, assembles (so that lower layers can be idmapped and every source can be
// reached), and a child in a user namespace of shifted ids enters.
//
// Failure travels back over the status pipe as text; success is the guest's
// first byte on the same pipe. Start reading at [Main] and [Outside].
package stage

import (
	"path/filepath"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/frozen"
)

// Descriptors that a stage inherits, in this order after the standard ones.
const (
	configFD = 3 // JSON of Config, read to its end; it comes when the process may go on
	socketFD = 4 // listening Unix socket of the guest
	statusFD = 5 // pipe back to the keeper

)

// The first bytes of the status pipe's messages.
const (
	StatusReady = 1   // the guest serves (guest.Config.Ready)
	StatusError = 'e' // followed by text up to the end
)

// Verbs of the child, as its first argument.
const (
	VerbAssemble = "stage"
	VerbEnter    = "enter"
	VerbGuest    = "guest"
	VerbNothing  = "nothing" // ends at once: the namespaces were made
	VerbProc     = "proc"    // sets the host name, mounts a /proc of its own and ends: no filter or masks of a container prevent it
	VerbNetwork  = "network" // sets up a network and ends: nftables is there
	VerbUDP      = "udp"     // the same, also redirects datagrams, and ends: TPROXY is there
	VerbFilter   = "filter"  // installs the system call filters and ends
	VerbOverlay  = "overlay" // mounts and uses an overlay in its working directory, and ends
	VerbHold     = "hold"    // holds a user namespace until its standard input ends
)

// Config is everything a stage needs; it comes from the keeper, never from
// the sandbox.
type Config struct {
	// Program is what the parent executes; the child is not told.
	Program string `json:"-"`

	Root      string            `json:"root"` // empty directory on the host; the root file system is mounted there
	StateDir  string            `json:"state_dir"`
	Hostname  string            `json:"hostname"`
	Workspace driver.Workspace  `json:"workspace"`
	Home      string            `json:"home"`
	User      driver.User       `json:"user"`
	Mounts    []driver.Mount    `json:"mounts"`
	Caches    []driver.Cache    `json:"caches"`
	Frozen    frozen.Layers     `json:"frozen"` // earlier writes of the sandbox; the workspace's are the first of its layers
	Base      *driver.Base      `json:"base"`   // nil: the host's own userland
	System    *driver.System    `json:"system"` // nil: no packages of its own
	Etc       map[string]string `json:"etc"`    // files above the /etc of the host or the image: name → content
	Env       []string          `json:"env"`
	Nested    bool              `json:"nested"`
	Streams   bool              `json:"streams"` // driver.Spec.Streams
	Limits    Limits            `json:"limits"`
	Quotas    Quotas            `json:"quotas"`
	// Shift is the host's id of the inner user when real root runs the
	// driver, and 0 otherwise.
	Shift    int    `json:"shift"`
	GuestKey []byte `json:"guest_key"`
	HostKey  []byte `json:"host_key"`
}

// HomeWork is the overlay's own directory for HOME, below StateDir.
const HomeWork = "home-work"

// Limits are those that a process sets for itself and its children, and the
// limit of file systems in memory. Zero and less mean none.
type Limits struct {
	PIDs      int64 `json:"pids,omitempty"`
	OpenFiles int64 `json:"open_files,omitempty"`
	Memory    int64 `json:"memory,omitempty"` // of the whole place, in bytes
	// Core is driver.Spec.Core.
	Core *uint64 `json:"core,omitempty"`
}

// Quotas bound a sandbox's share of what the kernel counts per user and not per
// process: without them one sandbox could use up what the human's own programs,
// and the human's other sandboxes, need. Zero means none at all.
//
// docs/security.md lists what else the kernel counts per user.
type Quotas struct {
	Instances  int64 `json:"instances"` // of inotify
	Watches    int64 `json:"watches"`
	Namespaces int64 `json:"namespaces"` // of each kind
}

// owner is the id that files made for the inner user get while assembling:
// the shifted one under real root, our own in a user namespace.
func (c Config) owner() (uid, gid int) {
	if c.Shift != 0 {
		return c.Shift, c.Shift
	}
	return c.User.UID, c.User.GID
}

// top is the directory that becomes the root. An image's root cannot be mounted
// before the ids of its layers can be mapped, which needs the process that will
// enter; so it is below the first mount.
func (c Config) top() string {
	if c.Base != nil {
		return filepath.Join(c.Root, baseDir)
	}
	return c.Root
}

// baseDir is the name of an image's root below Config.Root.
const baseDir = "base"
