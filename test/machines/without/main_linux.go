// Command without runs a program on which the kernel refuses some system
// calls, as a container's or a service's filter does:
//
//	without WHAT[,WHAT] COMMAND...
//
// WHAT is a key of filters, below.
package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// rule refuses a system call: always, or if its arguments match.
type rule struct {
	call  uintptr
	errno unix.Errno
	where []condition // all of them
}

// condition is about the lower half of an argument.
type condition struct {
	argument uint32 // 0 is the first
	bits     uint32 // one of them is set
	equals   uint32 // or, where bits is 0, the value
}

func missing(errno unix.Errno, calls ...uintptr) []rule {
	var all []rule
	for _, call := range calls {
		all = append(all, rule{call: call, errno: errno})
	}
	return all
}

var filters = map[string][]rule{
	// No user namespace can be made.
	"userns": {
		{unix.SYS_UNSHARE, unix.EPERM, []condition{{bits: unix.CLONE_NEWUSER}}},
		{unix.SYS_CLONE, unix.EPERM, []condition{{bits: unix.CLONE_NEWUSER}}},
		// Its flags are in memory, where no filter sees them: Docker's default
		// profile says that there is none, too.
		{call: unix.SYS_CLONE3, errno: unix.ENOSYS},
	},
	// A kernel older than Landlock, or built without it.
	"landlock": missing(unix.ENOSYS, unix.SYS_LANDLOCK_CREATE_RULESET, unix.SYS_LANDLOCK_ADD_RULE, unix.SYS_LANDLOCK_RESTRICT_SELF),
	// A kernel without a usable packet filter: socket(2) as it answers for an
	// unregistered protocol of netlink(7).
	"nftables": {{unix.SYS_SOCKET, unix.EPROTONOSUPPORT, []condition{{equals: unix.AF_NETLINK}, {argument: 2, equals: unix.NETLINK_NETFILTER}}}},
	// The answer of filters older than these calls. Programs fall back.
	"newer": append(missing(unix.EPERM, unix.SYS_CLOSE_RANGE),
		missing(unix.ENOSYS, unix.SYS_CLONE3, unix.SYS_STATX, unix.SYS_FACCESSAT2, unix.SYS_COPY_FILE_RANGE)...),
	"openat2":      missing(unix.EPERM, unix.SYS_OPENAT2),
	"memfd_create": missing(unix.ENOSYS, unix.SYS_MEMFD_CREATE),
	"pidfd_open":   missing(unix.EPERM, unix.SYS_PIDFD_OPEN),
	"mounts":       missing(unix.ENOSYS, unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT, unix.SYS_MOUNT_SETATTR, unix.SYS_FSOPEN, unix.SYS_FSMOUNT),
	"handles":      missing(unix.EOPNOTSUPP, unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_OPEN_BY_HANDLE_AT),
	"inotify":      missing(unix.ENOSYS, unix.SYS_INOTIFY_INIT1),
	// A network file system whose server has no lock manager.
	"locks": append(missing(unix.ENOLCK, unix.SYS_FLOCK),
		rule{unix.SYS_FCNTL, unix.ENOLCK, []condition{{argument: 1, equals: unix.F_SETLK}}},
		rule{unix.SYS_FCNTL, unix.ENOLCK, []condition{{argument: 1, equals: unix.F_SETLKW}}},
		rule{unix.SYS_FCNTL, unix.ENOLCK, []condition{{argument: 1, equals: unix.F_OFD_SETLK}}},
		rule{unix.SYS_FCNTL, unix.ENOLCK, []condition{{argument: 1, equals: unix.F_OFD_SETLKW}}}),
}

// Offsets in struct seccomp_data, seccomp(2): the number, and the lower half of
// the first argument on the little-endian machines that Go's amd64 and arm64
// are; each argument takes eight bytes.
const (
	number   = 0
	argument = 16
)

func main() {
	if len(os.Args) < 3 {
		fail(errors.New("usage: without WHAT[,WHAT] COMMAND"))
	}
	var rules []rule
	for name := range strings.SplitSeq(os.Args[1], ",") {
		if filters[name] == nil {
			fail(fmt.Errorf("cannot refuse %q: name some of %q", name, slices.Sorted(maps.Keys(filters))))
		}
		rules = append(rules, filters[name]...)
	}
	path, err := exec.LookPath(os.Args[2])
	if err != nil {
		fail(err)
	}
	// A filter belongs to the thread, and programs that the thread executes keep it.
	runtime.LockOSThread()
	if err := install(program(rules)); err != nil {
		fail(err)
	}
	fail(unix.Exec(path, os.Args[2:], os.Environ()))
}

func program(rules []rule) []unix.SockFilter {
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
	}
	answer := func(value uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: value} }
	var all []unix.SockFilter
	for _, r := range rules {
		// Each test skips the rest of the rule if it fails.
		skip := uint8(2*len(r.where) + 1)
		all = append(all, load(number), unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: uint32(r.call), Jf: skip})
		for _, c := range r.where {
			skip -= 2
			test := unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, K: c.bits, Jf: skip}
			if c.bits == 0 {
				test.Code, test.K = unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, c.equals
			}
			all = append(all, load(argument+8*c.argument), test)
		}
		all = append(all, answer(unix.SECCOMP_RET_ERRNO|uint32(r.errno)))
	}
	return append(all, answer(unix.SECCOMP_RET_ALLOW))
}

func install(filter []unix.SockFilter) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	list := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_, _, errno := unix.Syscall(unix.SYS_PRCTL, unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&list)))
	runtime.KeepAlive(filter)
	if errno != 0 {
		return errno
	}
	return nil
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "without:", err)
	os.Exit(126)
}
