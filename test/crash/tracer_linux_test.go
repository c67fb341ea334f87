package crash_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// steps are the system calls before which a process is killed: everything by
// which records, refs and directories change, and by which other processes
// are started or reached.
func steps() []uint64 {
	return append([]uint64{
		unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2, unix.SYS_LINKAT, unix.SYS_UNLINKAT, unix.SYS_MKDIRAT, unix.SYS_SYMLINKAT,
		unix.SYS_EXECVE, unix.SYS_CONNECT, unix.SYS_BIND, unix.SYS_MOUNT, unix.SYS_MOVE_MOUNT, unix.SYS_FTRUNCATE,
	}, olderSteps()...)
}

// kill is what the tracer did.
type kill struct {
	program string // of the process that it killed; empty when there were too few steps
	call    uint64
	err     error
}

// trace runs cmd to its end, follows everything that it starts, and kills the
// process that makes the nth step, at its beginning. What cmd leaves running
// goes on untraced.
func trace(cmd *exec.Cmd, n int) kill {
	done := make(chan kill)
	go func() {
		// ptrace(2) is a matter of threads: only the one that started cmd may
		// ask. It is never unlocked, so it ends with the goroutine, and the
		// kernel lets go of whatever it still traces.
		runtime.LockOSThread()
		done <- follow(cmd, n)
	}()
	return <-done
}

func follow(cmd *exec.Cmd, n int) kill {
	if err := cmd.Start(); err != nil { // SysProcAttr.Ptrace stops it at its execve
		return kill{err: err}
	}
	const options = unix.PTRACE_O_TRACESYSGOOD | unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_TRACEFORK | unix.PTRACE_O_TRACEVFORK | unix.PTRACE_O_TRACEEXEC
	var result kill
	known := map[int]bool{}
	wanted := steps()
	for {
		var status unix.WaitStatus
		// __WNOTHREAD: the children of other tests belong to other threads.
		pid, err := unix.Wait4(-1, &status, unix.WALL|unix.WNOTHREAD, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			result.err = fmt.Errorf("cannot wait for what is traced: %w", err)
			return result
		}
		if status.Exited() || status.Signaled() {
			if pid == cmd.Process.Pid {
				return result
			}
			continue
		}
		if !known[pid] {
			known[pid] = true
			if err := unix.PtraceSetOptions(pid, options); err != nil && !errors.Is(err, unix.ESRCH) {
				result.err = err
				return result
			}
		}
		deliver := 0
		switch signal := status.StopSignal(); {
		case signal == unix.SIGTRAP|0x80: // a system call, by PTRACE_O_TRACESYSGOOD
			call, entering := systemCall(pid)
			if entering && result.program == "" && slices.Contains(wanted, call) {
				if n--; n == 0 {
					result.program, result.call = programOf(pid), call
					_ = unix.Kill(pid, unix.SIGKILL) // it is stopped, so it is there
				}
			}
		case signal == unix.SIGTRAP, signal == unix.SIGSTOP && status.TrapCause() <= 0:
			// An event of a process or thread, or the first stop of a new one.
		default:
			deliver = int(signal)
		}
		_ = unix.PtraceSyscall(pid, deliver) // ESRCH: it was killed meanwhile
	}
}

// systemCall reads where a stopped thread is; ptrace_get_syscall_info(2) says
// it in the same way on every architecture (kernel 5.3).
func systemCall(pid int) (call uint64, entering bool) {
	const entry, number = 1, 24 // PTRACE_SYSCALL_INFO_ENTRY; offset of entry.nr
	var info [88]byte
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_GET_SYSCALL_INFO, uintptr(pid), uintptr(len(info)), uintptr(unsafe.Pointer(&info)), 0, 0)
	return binary.NativeEndian.Uint64(info[number:]), errno == 0 && info[0] == entry
}
