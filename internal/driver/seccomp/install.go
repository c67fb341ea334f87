//go:build linux

package seccomp

import (
	"errors"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// Install puts the policy on the calling thread, for good: everything that it
// executes or starts from now on is under it. It sets no_new_privs, without
// which an ordinary user may not install filters. The caller has locked the
// goroutine to its thread (runtime.LockOSThread) and executes a program next;
// other threads of this process stay as they were.
//
// The kernel's defaults for speculation apply (spec_store_bypass_disable=):
// programs here are not trusted, and SECCOMP_FILTER_FLAG_SPEC_ALLOW would
// overrule the administrator.
func Install(opts Options) error {
	arch, err := Native()
	if err != nil {
		return err
	}
	program, err := Compile(arch, Sandbox(opts))
	if err != nil {
		return err
	}
	if _, err := install(program, 0); err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot install the system call filter")
	}
	return nil
}

// InstallNotify puts a second, tiny filter on the calling thread, which asks
// the returned descriptor about every rename, about new limits for another
// process and, unless opts.Nested, every request for a set-group-ID bit (with
// opts.Install, for a set-user-ID bit too; with opts.Nested, about the scheduling
// of another process), and allows the rest; see seccomp_unotify(2). A thread
// under it waits in those calls for an answer, so the thread that answers must
// not be under it, nor a process started from here on without the descriptor
// being served. The descriptor is close-on-exec.
//
// A call that the policy of [Install] denies is denied without being asked
// about: the kernel takes the strictest verdict of all filters. It fails with
// fault.Conflict when an outer sandbox already listens on this thread: the
// kernel allows one listener in a chain of filters.
func InstallNotify(opts Options) (fd int, err error) { return installNotify(Watched(opts), "renames") }

// InstallAttributes is InstallNotify for changes of modes and times, and of the
// scheduling of other processes.
func InstallAttributes() (fd int, err error) {
	return installNotify(Attributes(), "changes of modes and times")
}

func installNotify(policy Policy, what string) (fd int, err error) {
	arch, err := Native()
	if err != nil {
		return -1, err
	}
	program, err := Compile(arch, policy)
	if err != nil {
		return -1, err
	}
	// With WAIT_KILLABLE_RECV (5.19) a signal does not restart a rename whose answer
	// is still being prepared: git's progress display has a timer signal every
	// second and would never get through a long one. Older kernels return EINVAL.
	fd, err = install(program, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER|unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)
	if errors.Is(err, unix.EINVAL) {
		fd, err = install(program, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER)
	}
	switch {
	case errors.Is(err, unix.EBUSY):
		return -1, fault.Wrap(fault.Conflict, err, "cannot watch %s: another filter of this process already has a listener", what)
	case err != nil:
		return -1, fault.Wrap(fault.Unavailable, err, "cannot watch %s", what)
	}
	return fd, nil
}

// install loads program into the kernel for this thread. With
// SECCOMP_FILTER_FLAG_NEW_LISTENER the result is the listener, which the
// kernel opens close-on-exec.
func install(program []unix.SockFilter, flags uintptr) (int, error) {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return -1, err
	}
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	result, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&prog)))
	runtime.KeepAlive(program)
	if errno != 0 {
		return -1, errno
	}
	return int(result), nil
}
