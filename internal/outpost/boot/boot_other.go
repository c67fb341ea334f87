//go:build !linux

package boot

import "io"

// Server answers one link until it ends.
type Server interface {
	Serve(conn io.ReadWriteCloser) error
}

// Is reports whether this process is the first one of a machine.
func Is([]string) bool { return false }

// Main is the first process.
func Main([]string) int { return 1 }

// Answer answers on the ports.
func Answer(Server, func() bool) int { return 1 }
