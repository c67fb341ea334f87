package driver

// Joiner is a driver whose places are namespaces of this machine, which root can
// join with nsenter(1).
type Joiner interface {
	// Namespaces returns the directory with the namespace files of a running
	// place, named as in /proc/PID/ns.
	Namespaces(lease Lease) (string, error)
}
