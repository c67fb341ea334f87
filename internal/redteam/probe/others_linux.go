package probe

import (
	"os"
	"runtime"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// others changes the scheduling and the limits of another process, thread by
// thread, and of its groups. Some changes cannot be undone, so the control
// takes a process of its own.
func others(args []string) (any, error) {
	if holdsMachine() && args[0] == "1" {
		return nil, errMachine
	}
	result := outcomes{}
	for _, arg := range args {
		pid, err := strconv.Atoi(arg)
		if err != nil {
			return nil, err
		}
		// In this order: an ordinary user may not take a process out of SCHED_IDLE again
		// (sched(7)), which attributes puts it into.
		for _, one := range []struct {
			name   string
			change func(pid int) error
		}{
			{"limit", lowerLimit}, {"affinity", setAffinity}, {"scheduler", setScheduler}, {"attributes", setAttributes}, {"parameters", setParameters},
			{"priority", func(pid int) error { return unix.Setpriority(unix.PRIO_PROCESS, pid, 19) }}, {"io priority", setIOPriority},
		} {
			result[one.name+" "+arg] = named(one.change(pid))
		}
	}
	return result, nil
}

// everybody does the same to all processes of this user at once.
func everybody([]string) (any, error) {
	uid := os.Getuid()
	return outcomes{
		"priority":    named(unix.Setpriority(unix.PRIO_USER, uid, 19)),
		"io priority": named(ioPriority(3, uid)), // IOPRIO_WHO_USER
	}, nil
}

// self does what programs do to themselves, their threads and their children.
func self([]string) (any, error) {
	runtime.LockOSThread()
	child, err := os.StartProcess("/bin/sleep", []string{"sleep", "60"}, &os.ProcAttr{})
	if err != nil {
		return nil, err
	}
	defer func() { _ = child.Kill(); _, _ = child.Wait() }()
	result := outcomes{}
	for name, pid := range map[string]int{"zero": 0, "process": os.Getpid(), "thread": unix.Gettid(), "child": child.Pid} {
		result["affinity "+name] = named(setAffinity(pid))
		result["scheduler "+name] = named(setScheduler(pid))
		result["priority "+name] = named(unix.Setpriority(unix.PRIO_PROCESS, pid, 19))
		result["io priority "+name] = named(setIOPriority(pid))
		result["limit "+name] = named(setLimit(pid))
		var now unix.Rlimit
		result["read limit "+name] = named(unix.Prlimit(pid, unix.RLIMIT_CORE, nil, &now))
	}
	return result, nil
}

func lowerLimit(pid int) error {
	return unix.Prlimit(pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: 3}, nil)
}

func setAffinity(pid int) error {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return err
	}
	return unix.SchedSetaffinity(pid, &set)
}

// schedParam is struct sched_param.
type schedParam struct{ priority int32 }

func setScheduler(pid int) error {
	const batch = 3
	_, _, errno := unix.Syscall(unix.SYS_SCHED_SETSCHEDULER, uintptr(pid), batch, uintptr(unsafe.Pointer(&schedParam{})))
	return errnoOf(errno)
}

func setParameters(pid int) error {
	_, _, errno := unix.Syscall(unix.SYS_SCHED_SETPARAM, uintptr(pid), uintptr(unsafe.Pointer(&schedParam{})), 0)
	return errnoOf(errno)
}

func setAttributes(pid int) error {
	return unix.SchedSetAttr(pid, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: 5 /* SCHED_IDLE */}, 0)
}

func setIOPriority(pid int) error { return ioPriority(1, pid) } // IOPRIO_WHO_PROCESS

func ioPriority(which, who int) error {
	const idle = 3 << 13
	_, _, errno := unix.Syscall(unix.SYS_IOPRIO_SET, uintptr(which), uintptr(who), idle)
	return errnoOf(errno)
}

func errnoOf(errno unix.Errno) error {
	if errno != 0 {
		return errno
	}
	return nil
}
