package guest

import (
	"os"
	"os/signal"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// outlive makes the guest survive every signal that can be survived: its
// children run under its uid and may send any.
//
// Most signals are caught and dropped; the Go runtime would otherwise end the
// program for TERM, HUP, QUIT and many others. Those that the runtime takes
// for a fault of its own code unless they come from kill(2) (a child can send
// them by sigqueue(3), or as I/O signals by F_SETSIG and F_SETOWN of fcntl(2))
// go back to their default action where the guest is PID 1: the kernel drops
// a signal from inside the namespace that init has no handler for
// (pid_namespaces(7)). A true fault then ends the guest instead of becoming a
// panic, which is no loss. Children start with default actions either way.
func outlive() {
	faults := []unix.Signal{
		unix.SIGSEGV, unix.SIGBUS, unix.SIGFPE, unix.SIGILL, unix.SIGTRAP,
		unix.SIGABRT, unix.SIGSYS, unix.SIGSTKFLT, unix.SIGPROF,
	}
	var caught []os.Signal
	for n := unix.Signal(1); n <= 64; n++ {
		switch {
		case n == unix.SIGKILL, n == unix.SIGSTOP:
			// Nobody can catch these; from inside they never reach PID 1.
		case n == unix.SIGURG:
			// The runtime's own, several times a second, and harmless.
		case n == unix.SIGCHLD:
			// The reaper's.
		case n >= 32 && n <= 34:
			// The runtime leaves these to libc and has no handler, so PID 1
			// never gets them (see above).
		case slices.Contains(faults, n) && isInit() && setDefault(n) == nil:
		default:
			caught = append(caught, n)
		}
	}
	drop := make(chan os.Signal, 1)
	signal.Notify(drop, caught...)
	go func() {
		for range drop {
		}
	}()
}

// setDefault gives a signal its default action behind the runtime's back.
func setDefault(n unix.Signal) error {
	// struct kernel_sigaction of amd64 and arm64: handler (SIG_DFL is 0),
	// flags, restorer, mask.
	var action [4]uint64
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(n), uintptr(unsafe.Pointer(&action)), 0, 8, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
