// Command without runs a program on which the kernel refuses some system
// calls, as a container's or a service's filter does:
//
//	without userns COMMAND...     no user namespace can be made (EPERM)
//	without landlock COMMAND...   a kernel from before Landlock (ENOSYS)
package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// rule refuses a system call: whatever it asks for, or where a bit of its first
// argument is set.
type rule struct {
	call  uintptr
	bit   uint32 // 0 for any
	errno unix.Errno
}

var filters = map[string][]rule{
	"userns": {
		{unix.SYS_UNSHARE, unix.CLONE_NEWUSER, unix.EPERM},
		{unix.SYS_CLONE, unix.CLONE_NEWUSER, unix.EPERM},
		// Its flags are in memory, where no filter sees them: Docker's default
		// profile says that there is none, too.
		{unix.SYS_CLONE3, 0, unix.ENOSYS},
	},
	"landlock": {
		{unix.SYS_LANDLOCK_CREATE_RULESET, 0, unix.ENOSYS},
		{unix.SYS_LANDLOCK_ADD_RULE, 0, unix.ENOSYS},
		{unix.SYS_LANDLOCK_RESTRICT_SELF, 0, unix.ENOSYS},
	},
}

// Offsets in struct seccomp_data, seccomp(2): the number, and the lower half of
// the first argument on the little-endian machines that Go's amd64 and arm64 are.
const (
	number   = 0
	argument = 16
)

func main() {
	if len(os.Args) < 3 || filters[os.Args[1]] == nil {
		fail(fmt.Errorf("usage: without userns|landlock COMMAND"))
	}
	path, err := exec.LookPath(os.Args[2])
	if err != nil {
		fail(err)
	}
	// A filter is the thread's, and what the thread executes keeps it.
	runtime.LockOSThread()
	if err := install(program(filters[os.Args[1]])); err != nil {
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
		refuse := answer(unix.SECCOMP_RET_ERRNO | uint32(r.errno))
		if r.bit == 0 {
			all = append(all, load(number),
				unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: uint32(r.call), Jf: 1}, refuse)
			continue
		}
		all = append(all, load(number),
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: uint32(r.call), Jf: 3}, load(argument),
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, K: r.bit, Jf: 1}, refuse)
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
