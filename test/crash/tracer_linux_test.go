package crash_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"time"
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

// target says when to kill, and whom.
type target struct {
	step  int           // counted from 1
	pid   int           // who is killed; 0 for the one that makes the step
	delay time.Duration // from the step to the kill of pid; the step is made meanwhile
	asks  bool          // count from the first connection on, with what is said and heard: the keeper does the work
}

// kill is what the tracer did.
type kill struct {
	program string // of the process that it killed; empty when there were too few steps
	call    uint64
	err     error
}

// trace runs cmd to its end, follows everything that it starts, and kills the
// process that makes the step that at counts, at its beginning. What cmd leaves running
// goes on untraced.
func trace(cmd *exec.Cmd, at target) kill {
	done := make(chan kill)
	go onOwnThread(func() { done <- follow(cmd, at) })
	return <-done
}

// onOwnThread runs do on a thread that has no children of others: waiting there
// would take their ends away. ptrace(2) is a matter of threads: only the one
// that started a process may ask about it. That thread is never unlocked, so it
// ends with the goroutine, and the kernel lets go of whatever it still traces.
func onOwnThread(do func()) {
	runtime.LockOSThread()
	// The first thread inherits the children of those that end.
	children, err := os.ReadFile("/proc/thread-self/children")
	if unix.Gettid() != unix.Getpid() && (err != nil || len(children) == 0) {
		do()
		return
	}
	defer runtime.UnlockOSThread()
	done := make(chan struct{})
	go func() { // on another thread: this one stays locked meanwhile
		defer close(done)
		onOwnThread(do)
	}()
	<-done
}

func follow(cmd *exec.Cmd, at target) kill {
	if err := cmd.Start(); err != nil { // SysProcAttr.Ptrace stops it at its execve
		return kill{err: err}
	}
	const options = unix.PTRACE_O_TRACESYSGOOD | unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_TRACEFORK | unix.PTRACE_O_TRACEVFORK | unix.PTRACE_O_TRACEEXEC
	var result kill
	known := map[int]bool{}
	wanted := steps()
	if at.asks {
		wanted = append(wanted, unix.SYS_READ, unix.SYS_WRITE)
	}
	n, counting := at.step, !at.asks
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
				release(known)
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
			counting = counting || entering && call == unix.SYS_CONNECT
			if counting && entering && result.program == "" && slices.Contains(wanted, call) {
				if n--; n == 0 {
					result.program, result.call = programOf(pid), call
					at.strike(pid)
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

// release lets everybody go on who is still traced and has not stopped yet since
// he was made: the kernel begins each of them with a SIGSTOP, which without a
// tracer would stop him for good, before his execve and with all the locks of
// whoever made him.
func release(known map[int]bool) {
	tracer := fmt.Sprintf("\nTracerPid:\t%d\n", unix.Gettid())
	tasks, _ := filepath.Glob("/proc/[0-9]*/task/[0-9]*/status") // fails for bad patterns only
	for _, path := range tasks {
		status, _ := os.ReadFile(path) // it may be over
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil || known[pid] || !bytes.Contains(status, []byte(tracer)) {
			continue
		}
		for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
			stopped, err := unix.Wait4(pid, nil, unix.WALL|unix.WNOTHREAD|unix.WNOHANG, nil)
			if stopped > 0 || err != nil && !errors.Is(err, unix.EINTR) {
				break
			}
		}
		_ = unix.PtraceDetach(pid) // ESRCH: it was over
	}
}

// strike kills whom it shall, while pid stands before its step.
func (at target) strike(pid int) {
	if at.pid == 0 {
		_ = unix.Kill(pid, unix.SIGKILL) // it is stopped, so it is there
		return
	}
	victim, err := unix.PidfdOpen(at.pid, 0)
	if err != nil {
		return // it has ended by itself
	}
	end := func() { _ = errors.Join(unix.PidfdSendSignal(victim, unix.SIGKILL, nil, 0), unix.Close(victim)) }
	if at.delay == 0 {
		end()
		return
	}
	time.AfterFunc(at.delay, end)
}

// systemCall reads where a stopped thread is; ptrace_get_syscall_info(2) says
// it in the same way on every architecture (kernel 5.3).
func systemCall(pid int) (call uint64, entering bool) {
	const entry, number = 1, 24 // PTRACE_SYSCALL_INFO_ENTRY; offset of entry.nr
	var info [88]byte
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_GET_SYSCALL_INFO, uintptr(pid), uintptr(len(info)), uintptr(unsafe.Pointer(&info)), 0, 0)
	return binary.NativeEndian.Uint64(info[number:]), errno == 0 && info[0] == entry
}
