// Package guest is the small program inside a sandbox, PID 1 where it can be:
// it runs commands, owns all waiting, moves files, answers where the agent's
// git history stands, and makes renaming a directory work on an overlay.
//
// It deliberately sets nothing up (mounts, namespaces, seccomp and limits are
// in force before it starts) and decides nothing: it has the rights of the
// commands it runs and trusts only the holder of the keeper's key.
//
// Start reading at [Run], then serve_linux.go for the operations.
package guest

import (
	"net"
	"os"

	"github.com/litterbox-sandbox/litterbox/internal/guest/egress"
)

// Shared describes a place on the host's own file system and process table.
// There Notify watches changes of modes and times instead of renames.
type Shared struct {
	Writable []string // directories below which modes and times may change
	Moved    []Moved
}

// Moved is a directory that keepers know by another path than it has here.
type Moved struct{ From, To string }

// Config is what the guest needs to know.
type Config struct {
	Listener   net.Listener // inherited; every connection is one keeper
	Ready      *os.File     // gets one byte once the guest serves, then is closed; may be nil
	PrivateKey []byte       // the guest's key, OpenSSH PEM
	HostKey    []byte       // the keeper's public key, authorized_keys line
	Workspace  string       // absolute path of the project inside
	Home       string       // absolute path of the inner user's home
	Env        []string     // K=V, for every command
	Network    bool         // outgoing connections are led to ConnectionPort and ResolverPort

	// Streams says that no descriptors are passed: connections are carried by
	// conduits of the wire.
	Streams bool

	// Datagrams, when not nil, carry UDP; without them the kernel refuses it.
	Datagrams *egress.DatagramSockets

	// SocketDiag is an open socket of NETLINK_SOCK_DIAG in the sandbox's network
	// namespace, with which the guest quickly finds out which process connects; 0
	// is none.
	SocketDiag int

	// Nested says that inner user namespaces are allowed, and with them every
	// mode of a file.
	Nested bool

	// Install says that a package manager runs here, and that programs asking for
	// set-user-ID and set-group-ID bits are made without them.
	Install bool

	// Shared is set where the guest has no namespaces of its own.
	Shared *Shared

	// Notify, when not nil, is called once on the thread that makes every
	// child, before the first one. It installs a seccomp filter on that thread
	// with user notification of rename, renameat and renameat2, and of chmod and
	// its like where they ask for the set-group-ID bit, and returns its listener;
	// the guest answers there (rename_linux.go). With
	// SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (kernel 5.19) a caller's timer
	// signals do not start a long rename over and over.
	Notify func() (listenerFD int, err error)
}
