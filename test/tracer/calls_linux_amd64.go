package tracer

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// olderSteps are those that libc still uses on this architecture.
var olderSteps = []step{
	{unix.SYS_RENAME, onDisk, false},
	{unix.SYS_LINK, onDisk, false},
	{unix.SYS_UNLINK, onDisk, false},
	{unix.SYS_MKDIR, onDisk, false},
	{unix.SYS_SYMLINK, onDisk, false},
	{unix.SYS_CHOWN, onDisk, false},
	{unix.SYS_LCHOWN, onDisk, false},
	{unix.SYS_CHMOD, onDisk, false},
}

// skip makes a thread that enters a system call skip it.
func skip(pid int) error {
	var registers unix.PtraceRegs
	if err := unix.PtraceGetRegs(pid, &registers); err != nil {
		return err
	}
	registers.Orig_rax = ^uint64(0)
	return unix.PtraceSetRegs(pid, &registers)
}

// answer makes a system call that a thread leaves fail.
func answer(pid int, errno syscall.Errno) error {
	var registers unix.PtraceRegs
	if err := unix.PtraceGetRegs(pid, &registers); err != nil {
		return err
	}
	registers.Rax = -uint64(errno)
	return unix.PtraceSetRegs(pid, &registers)
}
