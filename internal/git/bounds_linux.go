package git

import (
	"errors"
	"runtime"
	"syscall"
	"unsafe"

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

// awayFromTerminal starts a process to which a terminal's signals are blocked. It
// gets a process group of its own, but only a moment after fork(2): a Ctrl-C until
// then would end it, and with it a commit. A signal mask survives execve(2).
func awayFromTerminal(start func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var blocked, before unix.Sigset_t
	for _, s := range []syscall.Signal{unix.SIGINT, unix.SIGQUIT, unix.SIGTSTP, unix.SIGHUP} {
		bits := 8 * int(unsafe.Sizeof(blocked.Val[0]))
		blocked.Val[(int(s)-1)/bits] |= 1 << ((int(s) - 1) % bits)
	}
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &blocked, &before); err != nil {
		return err
	}
	return errors.Join(start(), unix.PthreadSigmask(unix.SIG_SETMASK, &before, nil))
}
