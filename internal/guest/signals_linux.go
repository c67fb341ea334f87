package guest

import (
	"os"
	"os/signal"
	"slices"
	"unsafe"

	"github.com/litterbox-sandbox/litterbox/internal/guest/proc"
	"golang.org/x/sys/unix"
)

// outlive makes the guest survive every survivable signal: its children run
// under its uid and may send any.
//
// Most signals are caught and dropped; the Go runtime would otherwise end the
// program for TERM, HUP, QUIT and many others. Those that the runtime takes
// for a fault of its own code unless they come from kill(2) (a child can send
// them by sigqueue(3), or as I/O signals by F_SETSIG and F_SETOWN of fcntl(2))
// go back to their default action where the guest is PID 1: the kernel drops
// a signal from inside the namespace that init has no handler for
// (pid_namespaces(7)). A true fault then ends the guest instead of becoming a
// panic, and nothing is lost. Children start with default actions either way.
//
// Signals for which the kernel ends a program without a core dump cannot be
// left to that: if init's first thread happens to block the signal, as the
// runtime does for moments and in every handler, and another thread does not,
// kernels end init at once (sig_ignored and complete_signal of
// kernel/signal.c). A handler, even one that does nothing, prevents that at
// every moment.
func outlive() {
	faults := []unix.Signal{
		unix.SIGSEGV, unix.SIGBUS, unix.SIGFPE, unix.SIGILL, unix.SIGTRAP, unix.SIGABRT, unix.SIGSYS,
	}
	// The runtime leaves 32 to 34 to libc. 33 is its own in a program without
	// one, and has a handler then.
	unwanted := []unix.Signal{unix.SIGSTKFLT, unix.SIGPROF, 32, 33, 34}
	var caught []os.Signal
	for n := unix.Signal(1); n <= 64; n++ {
		switch {
		case n == unix.SIGKILL, n == unix.SIGSTOP:
			// These cannot be caught; from inside they never reach PID 1.
		case n == unix.SIGURG:
			// The runtime's own, several times a second, and harmless.
		case n == unix.SIGCHLD:
			// The reaper's.
		case slices.Contains(unwanted, n):
			if n != 33 || hasDefault(n) {
				_ = setAction(n, doNothing()) // fails for no number that exists
			}
		case slices.Contains(faults, n) && proc.IsInit() && setAction(n, action{}) == nil:
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

// action is struct kernel_sigaction of amd64 and arm64; its zero value is the
// default action (SIG_DFL is 0).
type action struct {
	handler  uintptr
	flags    uint64
	restorer uintptr
	mask     uint64
}

// doNothing handles a signal behind the runtime's back: on the stack that the
// runtime keeps for handlers, because a goroutine's own may be full.
func doNothing() action {
	// SA_ONSTACK, SA_RESTART and SA_RESTORER (which amd64 demands) of asm/signal.h.
	const onStack, restart, hasRestorer = 0x08000000, 0x10000000, 0x04000000
	return action{handler: nothing, flags: onStack | restart | hasRestorer, restorer: restore}
}

// nothing and restore are the addresses of the functions in nothing_linux_*.s.
var nothing, restore uintptr

// setAction sets what a signal does, behind the runtime's back.
func setAction(n unix.Signal, to action) error { return sigaction(n, &to, nil) }

func hasDefault(n unix.Signal) bool {
	var is action
	return sigaction(n, nil, &is) == nil && is.handler == 0
}

func sigaction(n unix.Signal, set, get *action) error {
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(n),
		uintptr(unsafe.Pointer(set)), uintptr(unsafe.Pointer(get)), unsafe.Sizeof(action{}.mask), 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
