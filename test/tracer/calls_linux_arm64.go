package tracer

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// olderSteps are none: this architecture never had them.
var olderSteps []step

// skip makes a thread that enters a system call skip it; the number is a
// register set of its own (NT_ARM_SYSTEM_CALL, elf.h).
func skip(pid int) error {
	const systemCall = 0x404
	none := int32(-1)
	vector := unix.Iovec{Base: (*byte)(unsafe.Pointer(&none)), Len: uint64(unsafe.Sizeof(none))}
	if _, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SETREGSET, uintptr(pid), systemCall, uintptr(unsafe.Pointer(&vector)), 0, 0); errno != 0 {
		return errno
	}
	return nil
}

// answer makes a system call that a thread leaves fail.
func answer(pid int, errno syscall.Errno) error {
	var registers unix.PtraceRegs
	if err := unix.PtraceGetRegs(pid, &registers); err != nil {
		return err
	}
	registers.Regs[0] = -uint64(errno)
	return unix.PtraceSetRegs(pid, &registers)
}
