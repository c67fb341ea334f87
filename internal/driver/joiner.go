package driver

import "context"

// Joiner is a driver whose places are namespaces of this machine, which root can
// join with nsenter(1).
type Joiner interface {
	// Namespaces returns the directory with the namespace files of a running
	// place, named as in /proc/PID/ns.
	Namespaces(lease Lease) (string, error)
}

// FarJoiner is a driver whose places are namespaces of another machine, which root of
// that one can join.
type FarJoiner interface {
	// NamespacesThere is Namespaces with a directory of the other machine. One that
	// cannot say is ErrUnsupported.
	NamespacesThere(ctx context.Context, lease Lease) (string, error)
}
