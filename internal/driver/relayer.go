package driver

import "io"

// Relayer is also implemented by drivers whose keepers lend their link to a machine
// to other processes of the same user, so that these need not connect by themselves.
type Relayer interface {
	// Relay lends the link that this driver has to the machine of a sandbox, from now
	// on until the result is closed, which waits some seconds for questions under way.
	// The result is nil where nothing is lent. The sandbox's keeper calls it once, before
	// any other method: the driver then borrows no link itself.
	Relay(stateDir string) (io.Closer, error)
}
