package tracer

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
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Target says at which system call to act, on which process, and how.
type Target struct {
	Step int // counted from 1

	// Of are processes that already run. Then only the steps of their own
	// threads count, not those of the command or of what they start. Without
	// any, the steps of the command count, and of everything that it starts.
	Of []int

	Kill  int           // the process to kill; 0 for the one that makes the step
	Delay time.Duration // from the step to the kill of Kill; the step is made meanwhile
	Asks  bool          // count from the first connection on, including what is sent and received

	// Fail makes the step fail, once, with an error that may happen to it,
	// instead of killing a process: the Fail'th of these, counted from 1.
	Fail int
}

// Result is what was done.
type Result struct {
	Program string        // of the process that made the step; empty if there were too few steps
	PID     int           // of it
	Call    uint64        // the step
	Path    string        // of the file that it was about, if known
	Errno   syscall.Errno // the error it failed with
	Err     error         // why there is no result
}

func (r Result) String() string {
	if r.Program == "" {
		return "nothing"
	}
	return fmt.Sprintf("%s at call %d %s %s", r.Program, r.Call, r.Path, r.Errno)
}

// Run runs cmd to its end, follows the processes of the target, and does what
// it says. Processes that cmd leaves running go on untraced.
func Run(cmd *exec.Cmd, at Target) Result {
	done := make(chan Result)
	go onOwnThread(func() { done <- follow(cmd, at) })
	return <-done
}

// onOwnThread runs do on a thread that has no children of others: waiting there
// would take away their exits. ptrace(2) works by thread: only the one that
// started a process may ask about it. That thread is never unlocked, so it ends
// with the goroutine, and the kernel lets go of whatever it still traces.
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

// options is what the kernel reports about processes that are followed with all
// that they start; of those that already ran only threads are followed.
const (
	options          = unix.PTRACE_O_TRACESYSGOOD | unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_TRACEFORK | unix.PTRACE_O_TRACEVFORK | unix.PTRACE_O_TRACEEXEC
	optionsOfRunning = unix.PTRACE_O_TRACESYSGOOD | unix.PTRACE_O_TRACECLONE
)

func follow(cmd *exec.Cmd, at Target) Result {
	known := map[int]bool{}
	if len(at.Of) == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true} // it stops at its execve
	}
	for _, pid := range at.Of {
		if err := seize(pid, known); err != nil {
			return Result{Err: fmt.Errorf("cannot follow process %d: %w", pid, err)}
		}
	}
	if err := cmd.Start(); err != nil {
		return Result{Err: err}
	}
	var result Result
	failing := map[int]bool{} // threads in a system call that must fail
	n, counting := at.Step, !at.Asks
	for {
		var status unix.WaitStatus
		// __WNOTHREAD: the children of other tests belong to other threads.
		pid, err := unix.Wait4(-1, &status, unix.WALL|unix.WNOTHREAD, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			result.Err = fmt.Errorf("cannot wait for what is traced: %w", err)
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
			if len(at.Of) == 0 { // a thread of a seized process has its options
				if err := unix.PtraceSetOptions(pid, options); err != nil && !errors.Is(err, unix.ESRCH) {
					result.Err = err
					return result
				}
			}
		}
		deliver := 0
		switch signal := status.StopSignal(); {
		case signal == unix.SIGTRAP|0x80: // a system call, by PTRACE_O_TRACESYSGOOD
			stop := look(pid)
			counting = counting || stop.entering && stop.call == unix.SYS_CONNECT
			switch {
			case failing[pid] && !stop.entering:
				delete(failing, pid)
				if err := answer(pid, result.Errno); err != nil && !errors.Is(err, unix.ESRCH) {
					result.Err = err
				}
			case counting && stop.entering && result.Program == "" && at.counts(pid, stop):
				if n--; n > 0 {
					break
				}
				result.Program, result.PID, result.Call, result.Path = programOf(pid), pid, stop.call, fileOf(pid, stop)
				if at.Fail == 0 {
					at.strike(pid)
					break
				}
				failures := failuresOf(stop.call)
				result.Errno = failures[(at.Fail-1)%len(failures)]
				if err := skip(pid); err != nil && !errors.Is(err, unix.ESRCH) {
					result.Err = err
				}
				failing[pid] = true
			}
		case signal == unix.SIGTRAP, signal == unix.SIGSTOP && status.TrapCause() <= 0:
			// An event of a process or thread, or the first stop of a new one.
		default:
			deliver = int(signal)
		}
		_ = unix.PtraceSyscall(pid, deliver) // ESRCH: it was killed meanwhile
	}
}

// counts reports whether the call is one of the steps.
func (at Target) counts(pid int, stop stop) bool {
	if at.Fail > 0 {
		return failuresOf(stop.call) != nil && changes(pid, stop)
	}
	if isStep(stop.call) || at.Asks && (stop.call == unix.SYS_READ || stop.call == unix.SYS_WRITE) {
		return true
	}
	// Processes that already run do what they are told, so what they say counts, too.
	return len(at.Of) > 0 && (isRecord(stop.call) && changes(pid, stop) || slices.Contains(deeds, stop.call))
}

// seize begins to follow a running process, with all its threads and those
// that they will make.
func seize(pid int, known map[int]bool) error {
	for more := true; more; {
		more = false
		tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
		if err != nil {
			return err
		}
		for _, task := range tasks {
			tid, err := strconv.Atoi(task.Name())
			if err != nil || known[tid] {
				continue
			}
			err = ptrace(unix.PTRACE_SEIZE, tid, optionsOfRunning)
			if err == nil {
				err = ptrace(unix.PTRACE_INTERRUPT, tid, 0)
			}
			if errors.Is(err, unix.ESRCH) {
				continue // it is over
			}
			// EPERM of a later one: a thread made by a followed one is already
			// followed.
			if err != nil && len(known) == 0 {
				return err
			}
			known[tid], more = true, true
		}
	}
	return nil
}

func ptrace(request, pid int, data uintptr) error {
	if _, _, errno := unix.Syscall6(unix.SYS_PTRACE, uintptr(request), uintptr(pid), 0, data, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

// release lets every process go on that is still traced and has not stopped yet since
// its start: the kernel starts each of them with a SIGSTOP, which without a tracer
// would stop it for good, before its execve and with all the locks of its parent.
func release(known map[int]bool) {
	tracer := fmt.Sprintf("\nTracerPid:\t%d\n", unix.Gettid())
	tasks, _ := filepath.Glob("/proc/[0-9]*/task/[0-9]*/status") // fails for bad patterns only
	for _, path := range tasks {
		status, _ := os.ReadFile(path) // it may have ended
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
		_ = unix.PtraceDetach(pid) // ESRCH: it had ended
	}
}

// strike kills the chosen process, while pid is before its step.
func (at Target) strike(pid int) {
	if at.Kill == 0 {
		_ = unix.Kill(pid, unix.SIGKILL) // it is stopped, so it exists
		return
	}
	victim, err := unix.PidfdOpen(at.Kill, 0)
	if err != nil {
		return // it has ended by itself
	}
	end := func() { _ = errors.Join(unix.PidfdSendSignal(victim, unix.SIGKILL, nil, 0), unix.Close(victim)) }
	if at.Delay == 0 {
		end()
		return
	}
	time.AfterFunc(at.Delay, end)
}

// stop is the place where a thread is stopped.
type stop struct {
	call     uint64
	args     [6]uint64
	entering bool
}

// look asks where a stopped thread is; ptrace_get_syscall_info(2) says so in
// the same way on every architecture (kernel 5.3).
func look(pid int) stop {
	const entry, number = 1, 24 // PTRACE_SYSCALL_INFO_ENTRY; offset of entry.nr
	var info [88]byte
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_GET_SYSCALL_INFO, uintptr(pid), uintptr(len(info)), uintptr(unsafe.Pointer(&info)), 0, 0)
	at := stop{call: binary.NativeEndian.Uint64(info[number:]), entering: errno == 0 && info[0] == entry}
	for i := range at.args {
		at.args[i] = binary.NativeEndian.Uint64(info[number+8+8*i:])
	}
	return at
}

// programOf names the program that a process runs.
func programOf(pid int) string {
	cmdline, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // a zombie has none
	argv := strings.Split(string(cmdline), "\x00")
	name := filepath.Base(argv[0])
	if len(argv) > 1 {
		name += " " + argv[1]
	}
	return name
}
