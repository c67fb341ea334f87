package guest

import (
	"bytes"
	"path/filepath"
	"strconv"

	"github.com/litterbox-sandbox/litterbox/internal/guest/proc"
	"golang.org/x/sys/unix"
)

// A process that a service detaches from itself (two forks, a session of its
// own) may clear its environment too, as daemons do. So each run of a service
// has a mark that every process inherits and that no program has a reason to
// change: the soft limit of file locks, which counts nothing since Linux 2.4.25
// (RLIMIT_LOCKS, getrlimit(2)). The mark in the environment is for processes
// whose limits were changed all the same.

// marked runs fork while this process, and so the new one, has the mark. Only
// the spawner's thread forks, so no other process gets it.
func marked(mark uint64, fork func() (int, error)) (int, error) {
	var own unix.Rlimit
	if mark == 0 || unix.Getrlimit(unix.RLIMIT_LOCKS, &own) != nil || mark > own.Max {
		return fork()
	}
	with := own
	with.Cur = mark
	if unix.Setrlimit(unix.RLIMIT_LOCKS, &with) != nil {
		return fork()
	}
	defer func() { _ = unix.Setrlimit(unix.RLIMIT_LOCKS, &own) }() // it was possible before
	return fork()
}

// limitOf reads the mark of a process; 0 when it has none.
func limitOf(pid int) uint64 {
	limits, err := proc.ReadSmall(filepath.Join("/proc", strconv.Itoa(pid), "limits"), maxLimits)
	if err != nil {
		return 0
	}
	return markIn(limits)
}

func markIn(limits []byte) uint64 {
	for line := range bytes.Lines(limits) {
		if values, ok := bytes.CutPrefix(line, []byte("Max file locks")); ok {
			fields := bytes.Fields(values)
			if len(fields) == 0 {
				return 0
			}
			mark, err := strconv.ParseUint(string(fields[0]), 10, 64)
			if err != nil {
				return 0 // unlimited
			}
			return mark
		}
	}
	return 0
}

// maxLimits is more than /proc/<pid>/limits ever holds (proc(5)).
const maxLimits = 8 << 10
