//go:build !linux

package process

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// KeepOutOfDumps makes this process leave no core dump, unless the system's own
// crash reporter takes one. It returns the previous limit, which its children
// should begin with.
func KeepOutOfDumps() (before uint64, err error) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &limit); err != nil {
		return 0, fmt.Errorf("cannot read the limit of core dumps: %w", err)
	}
	own := unix.Rlimit{Cur: 0, Max: limit.Max}
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &own); err != nil {
		return limit.Cur, fmt.Errorf("cannot keep this process out of core dumps: %w", err)
	}
	return limit.Cur, nil
}
