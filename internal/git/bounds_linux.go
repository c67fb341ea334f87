package git

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// limitProcess bounds a process of ours that has just started. Memory is
// RLIMIT_DATA, which counts private writable memory, mapped or not (since Linux
// 4.7), and not the packs that git maps, which can be larger than any limit.
func limitProcess(pid int, b Bounds) error {
	var problems []error
	set := map[int]uint64{unix.RLIMIT_CORE: 0} // it would hold an agent's bytes
	if b.Memory > 0 {
		set[unix.RLIMIT_DATA] = uint64(b.Memory)
	}
	if b.time > 0 {
		set[unix.RLIMIT_CPU] = uint64(b.time.Seconds())
	}
	for resource, most := range set {
		var now unix.Rlimit
		if err := unix.Prlimit(pid, resource, nil, &now); err != nil {
			problems = append(problems, err)
			continue
		}
		// A second longer than the soft limit, whose signal tells the cause.
		limit := unix.Rlimit{Cur: min(most, now.Cur), Max: min(most+1, now.Max)}
		problems = append(problems, unix.Prlimit(pid, resource, &limit, nil))
	}
	return errors.Join(problems...)
}

// endWithCaller ends the process when the thread that starts it ends: the waiting
// goroutine must be locked to it. With SIGTERM git removes its temporary files.
func endWithCaller(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGTERM }
