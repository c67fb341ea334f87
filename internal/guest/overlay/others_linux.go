package overlay

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"syscall"
	"unsafe"

	"github.com/litterbox-sandbox/litterbox/internal/guest/proc"
	"golang.org/x/sys/unix"
)

// Commands run under the guest's uid, so the kernel would let them change its
// limits and its scheduling, and a guest that never runs serves no one. Two
// things prevent that:
//
// For scheduling, the kernel also checks whether the caller's capabilities
// include all of the target's (cap_safe_nice of security/commoncap.c). So the
// guest keeps one that no command gets, and that means nothing in a user
// namespace. That costs nothing, and also covers groups of processes and future
// threads.
//
// For limits, and where there is no user namespace, it does not check. Those
// calls go to the guest unless they are about the caller, see onlyItself.

// apart is the capability: the kernel checks for it only in the first user
// namespace (epoll_ctl(2), EPOLLWAKEUP).
const apart = unix.CAP_BLOCK_SUSPEND

// StandApart leaves the guest with that capability as one that it could use,
// and that no child inherits; without it, it does nothing. It applies to every
// thread, but only to the caller's if the program was linked with cgo.
func StandApart() error {
	if set, err := unix.PrctlRetInt(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_IS_SET, apart, 0, 0); err != nil || set != 1 {
		return nil
	}
	header := &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	data := &[2]unix.CapUserData{}
	data[apart/32].Permitted = 1 << (apart % 32)
	// It takes the ambient set along (capset of security/commoncap.c).
	_, _, errno := syscall.AllThreadsSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(header)), uintptr(unsafe.Pointer(data)), 0)
	if errno == unix.ENOTSUP {
		return unix.Capset(header, &data[0])
	}
	if errno != 0 {
		return errno
	}
	return nil
}

// aboutProcess reports whether a call changes the process that its arguments
// name, and which one: 0 is the caller, and below it a group or a user.
func aboutProcess(n *notification) (pid int32, ok bool) {
	const group = -1
	switch [2]uint32{n.arch, uint32(n.nr)} {
	case [2]uint32{unix.AUDIT_ARCH_X86_64, 302}, [2]uint32{unix.AUDIT_ARCH_AARCH64, 261}, // prlimit64
		[2]uint32{unix.AUDIT_ARCH_X86_64, 142}, [2]uint32{unix.AUDIT_ARCH_AARCH64, 118}, // sched_setparam
		[2]uint32{unix.AUDIT_ARCH_X86_64, 144}, [2]uint32{unix.AUDIT_ARCH_AARCH64, 119}, // sched_setscheduler
		[2]uint32{unix.AUDIT_ARCH_X86_64, 203}, [2]uint32{unix.AUDIT_ARCH_AARCH64, 122}, // sched_setaffinity
		[2]uint32{unix.AUDIT_ARCH_X86_64, 314}, [2]uint32{unix.AUDIT_ARCH_AARCH64, 274}: // sched_setattr
		return int32(n.args[0]), true
	case [2]uint32{unix.AUDIT_ARCH_X86_64, 141}, [2]uint32{unix.AUDIT_ARCH_AARCH64, 140}: // setpriority
		if uint32(n.args[0]) != unix.PRIO_PROCESS {
			return group, true
		}
		return int32(n.args[1]), true
	case [2]uint32{unix.AUDIT_ARCH_X86_64, 251}, [2]uint32{unix.AUDIT_ARCH_AARCH64, 30}: // ioprio_set
		if uint32(n.args[0]) != 1 { // IOPRIO_WHO_PROCESS
			return group, true
		}
		return int32(n.args[1]), true
	}
	return 0, false
}

// isLimit reports whether the capability above is not checked for a call.
func isLimit(n *notification) bool {
	return n.arch == unix.AUDIT_ARCH_X86_64 && n.nr == 302 || n.arch == unix.AUDIT_ARCH_AARCH64 && n.nr == 261
}

// onlyItself lets a call go on that can only reach the caller: one about its
// own process or thread, whose numbers it keeps as long as it waits here. Any
// other number could belong to a thread of the guest by the time the call goes
// on. A process in a pid namespace below the guest's cannot name it.
func (w Watched) onlyItself(n *notification, pid int32) answer {
	goOn := answer{flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
	refused := answer{errno: -int32(unix.EPERM)}
	status, err := os.ReadFile(procPath(n.pid, "status"))
	if err != nil || !w.valid(n) {
		return refused
	}
	thread, group := statusFields(status, "NSpid:"), statusFields(status, "NStgid:")
	if len(thread) == 0 || len(group) == 0 {
		return refused
	}
	own := []string{thread[len(thread)-1], group[len(group)-1]}
	switch {
	case pid == 0, len(thread) > ownDepth():
		return goOn
	case pid > 0 && slices.Contains(own, strconv.Itoa(int(pid))):
		return goOn
	case !isLimit(n) && proc.IsInit() && !holdsApart(status):
		return goOn // the kernel refuses it for the guest
	}
	return refused
}

// holdsApart reports whether the caller has the capability that keeps commands
// from the guest, as it has in an inner user namespace.
func holdsApart(status []byte) bool {
	permitted := statusFields(status, "CapPrm:")
	if len(permitted) != 1 {
		return true
	}
	set, err := strconv.ParseUint(permitted[0], 16, 64)
	return err != nil || set>>apart&1 == 1
}

// ownDepth is the number of pid namespaces visible from here in which the guest
// has a number.
func ownDepth() int {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return int(^uint(0) >> 1)
	}
	return len(statusFields(status, "NSpid:"))
}

// statusFields are the words of a line of /proc/PID/status (proc_pid_status(5)).
func statusFields(status []byte, key string) []string {
	for line := range bytes.Lines(status) {
		if rest, ok := bytes.CutPrefix(line, []byte(key)); ok {
			var words []string
			for word := range bytes.FieldsSeq(rest) {
				words = append(words, string(word))
			}
			return words
		}
	}
	return nil
}
