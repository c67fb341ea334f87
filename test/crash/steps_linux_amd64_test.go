package crash_test

import "golang.org/x/sys/unix"

// olderSteps are those that libc still uses on this architecture.
func olderSteps() []uint64 {
	return []uint64{unix.SYS_RENAME, unix.SYS_LINK, unix.SYS_UNLINK, unix.SYS_MKDIR, unix.SYS_SYMLINK}
}
