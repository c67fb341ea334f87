package git

import (
	"errors"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// watchEvery is how often a bounded process is measured.
const watchEvery = 50 * time.Millisecond

// limitProcess bounds a process of ours that has just started. This system has no
// limits that one process sets for another, and none on memory that it keeps
// (setrlimit(2) of xnu): a watch measures the process, and ends it when it takes more.
// The system writes no core dumps unless it was told to (launchd.plist(5)).
func limitProcess(pid int, b Bounds) error {
	if b.Memory <= 0 && b.time <= 0 {
		return nil
	}
	first, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if errors.Is(err, unix.EIO) {
		return nil // it has ended
	}
	if err != nil {
		return err // it would run without bounds
	}
	if _, err := measure(pid); err != nil && !errors.Is(err, unix.ESRCH) {
		return err
	}
	tick := time.NewTicker(watchEvery)
	go func() {
		defer tick.Stop()
		watch(b, tick.C, func() (taken, error) {
			// The pid may be another process's after ours was waited for.
			now, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
			if err != nil || now.Proc.P_starttime != first.Proc.P_starttime {
				return taken{}, unix.ESRCH
			}
			return measure(pid)
		}, func(signal syscall.Signal) { _ = syscall.Kill(pid, signal) }) // it may just have ended
	}()
	return nil
}

// measure asks the kernel what a process has taken, as proc_pid_rusage(3) does.
func measure(pid int) (taken, error) {
	const (
		callPIDUsage = 9 // PROC_INFO_CALL_PIDRUSAGE, <sys/proc_info_private.h>
		flavor       = 0 // RUSAGE_INFO_V0
	)
	// struct rusage_info_v0 of <sys/resource.h>; times are in units of
	// mach_absolute_time. The footprint is memory of its own, compressed or not,
	// without the packs that it maps.
	var info struct {
		_            [16]byte // its UUID
		user, system uint64
		_            [5]uint64 // times it woke, pages it read, wired and resident memory
		footprint    uint64
		_            [2]uint64 // when it began and ended
	}
	if _, _, errno := unix.Syscall6(unix.SYS_PROC_INFO, callPIDUsage, uintptr(pid), flavor, 0, uintptr(unsafe.Pointer(&info)), 0); errno != 0 {
		return taken{}, errno
	}
	return taken{memory: int64(info.footprint), time: absolute(info.user + info.system)}, nil
}

// absolute turns units of mach_absolute_time into time: 125/3 ns on Apple's
// processors, 1 ns on Intel's.
func absolute(units uint64) time.Duration {
	if machNanos {
		return time.Duration(units)
	}
	return time.Duration(units * 125 / 3)
}

// endWithCaller does nothing: the system ends no process with another.
func endWithCaller(*syscall.SysProcAttr) {}

// awayFromTerminal only starts the process: a Ctrl-C between fork and its change of
// process group can end it.
func awayFromTerminal(start func() error) error { return start() }
