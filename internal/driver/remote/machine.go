package remote

import (
	"context"
	"io"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
)

// Machine is a Linux system that an outpost runs in. Its methods are safe for
// concurrent use, from any process.
type Machine interface {
	// Name distinguishes it from others, also in messages.
	Name() string

	// Ensure makes the machine, or starts it, and is quick if it runs. It is only
	// called before a place is made: questions do not make a machine.
	Ensure(ctx context.Context) error

	// Dial opens a byte stream to the machine's outpost, and starts the outpost if
	// it does not run. It fails with driver.ErrMachineLost when the machine is
	// known to be gone, and with driver.ErrUnreachable otherwise.
	Dial(ctx context.Context) (io.ReadWriteCloser, error)
}

// Outfitted is a Machine whose Ensure can make it with something of its first
// place's choice.
type Outfitted interface {
	With(vm driver.VM) Machine
}

// Sleeper is a Machine that loses its places when it is stopped, and keeps their
// files. Wake starts an existing machine but makes none: then it fails with
// driver.ErrMachineLost.
type Sleeper interface {
	Wake(ctx context.Context) error
}

// Relayed is a Machine with a slow Dial, so that keepers lend their links to it.
// Relays returns the directory of all state, below which their sockets are, and what
// identifies the outpost that Dial starts: only a link to the same one is borrowed.
// No link is borrowed where root is empty.
type Relayed interface {
	Relays() (root, outpost string)
}
