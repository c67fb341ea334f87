package process

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// noDump is the limit of a core dump that keeps the kernel from making one,
// also if a program takes them: then the kernel ignores every limit except this
// value (fs/coredump.c; core(5) says that a pipe is not limited).
const noDump = 1

// KeepOutOfDumps makes this process leave no core dump, no matter what ends it.
// It returns the previous limit, which its children should begin with.
func KeepOutOfDumps() (before uint64, err error) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &limit); err != nil {
		return 0, fmt.Errorf("cannot read the limit of core dumps: %w", err)
	}
	// If not even a byte is allowed, no more can be requested: then only a program
	// that takes dumps gets one.
	own := unix.Rlimit{Cur: min(noDump, limit.Max), Max: limit.Max}
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &own); err != nil {
		return limit.Cur, fmt.Errorf("cannot keep this process out of core dumps: %w", err)
	}
	return limit.Cur, nil
}
