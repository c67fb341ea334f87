// Package confine is the child side of the landlock driver: a warden, which
// ends the processes that the place leaves behind, and below it the guest,
// which gives up what can be given up without namespaces. Every command gives
// up a little more than the guest: it cannot signal the guest and has no
// terminal but its own.
//
// It mounts nothing and decides nothing. Start reading at [Main].
package confine

import "github.com/litterbox-sandbox/litterbox/internal/driver"

// Descriptors that the warden inherits and hands on, after the standard ones.
const (
	configFD = 3 // JSON of Config, read to its end
	socketFD = 4 // listening Unix socket of the guest
	statusFD = 5 // pipe back to the keeper
)

// The first bytes of the status pipe's messages.
const (
	StatusReady = 1
	StatusError = 'e' // followed by text up to the end
)

// Verbs of the child, as its first argument.
const (
	Prefix      = "landlock-"        // begins all of them
	VerbWarden  = "landlock-warden"  // ends what the guest leaves behind
	VerbConfine = "landlock-confine" // gives up its rights, and becomes the guest
	VerbGuest   = "landlock-guest"   // the program inside
	VerbTry     = "landlock-try"     // gives up its rights and ends: the tier is available
)

// Config is everything that the children need; it comes from the keeper.
type Config struct {
	// Program is what the parent executes; the child is not told.
	Program string `json:"-"`

	StateDir  string           `json:"state_dir"`
	Workspace driver.Workspace `json:"workspace"`
	Home      string           `json:"home"`      // the human's, which the sandbox must not read
	Mounts    []string         `json:"mounts"`    // of the host, readable at their own paths
	Protected []string         `json:"protected"` // never readable, wherever they lie
	Moved     []Moved          `json:"moved"`
	Env       []string         `json:"env"`
	OpenFiles int64            `json:"open_files"`
	GuestKey  []byte           `json:"guest_key"`
	HostKey   []byte           `json:"host_key"`
}

// Moved is a directory that keepers know by another path than it has here.
type Moved struct {
	From string `json:"from"`
	To   string `json:"to"`
}
