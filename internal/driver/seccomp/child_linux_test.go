package seccomp_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"unsafe"

	"github.com/litterbox-sandbox/litterbox/internal/driver/seccomp"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"golang.org/x/sys/unix"
)

// rawCall is a call for a child to make under the filter.
type rawCall struct {
	Number uint32
	Args   [6]uint64
}

// child runs one mode of the re-executed test binary; "-free" modes do the
// same without a filter.
func child(mode string) int {
	runtime.LockOSThread()
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}) // SIGSYS would leave a core file
	name, free := strings.CutSuffix(mode, "-free")
	name, nested := strings.CutSuffix(name, "-nested")
	if !free && name != "notify" {
		if err := seccomp.Install(seccomp.Options{Nested: nested}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 125
		}
	}
	switch name {
	case "calls":
		return makeCalls()
	case "foreign":
		return foreignCall(false)
	case "fault":
		return foreignCall(true)
	case "x32":
		pid, _, errno := unix.RawSyscall(1<<30|unix.SYS_GETPID, 0, 0, 0)
		fmt.Println(pid, errno)
		return 0
	case "exec":
		fmt.Fprintln(os.Stderr, unix.Exec(os.Args[1], os.Args[1:], environment()))
		return 125
	case "go":
		return goProgram()
	case "notify":
		return watchRenames()
	}
	return 124
}

func environment() []string {
	var kept []string
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, childVariable+"=") {
			kept = append(kept, entry)
		}
	}
	return kept
}

// makeCalls reads calls from stdin, makes them and prints their errors.
func makeCalls() int {
	var calls []rawCall
	if err := json.NewDecoder(os.Stdin).Decode(&calls); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 125
	}
	self := os.Getpid()
	errnos := make([]unix.Errno, len(calls))
	for i, c := range calls {
		_, _, errnos[i] = unix.RawSyscall6(uintptr(c.Number), uintptr(c.Args[0]), uintptr(c.Args[1]), uintptr(c.Args[2]), uintptr(c.Args[3]), uintptr(c.Args[4]), uintptr(c.Args[5]))
		// A clone that was let through: this is its child, and shares stdout.
		if pid, _, _ := unix.RawSyscall(unix.SYS_GETPID, 0, 0, 0); int(pid) != self {
			_, _, _ = unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(errnos); err != nil {
		return 125
	}
	return 0
}

// notification and answer are seccomp_notif and seccomp_notif_resp of
// linux/seccomp.h.
type notification struct {
	ID     uint64
	PID    uint32
	Flags  uint32
	Number int32
	Arch   uint32
	IP     uint64
	Args   [6]uint64
}

type answer struct {
	ID    uint64
	Value int64
	Error int32
	Flags uint32
}

// watchRenames renames with a Go call and with mv, both under the watching
// filter, and prints the calls that the listener was asked about.
func watchRenames() int {
	report := func(err error) int {
		fmt.Fprintln(os.Stderr, err)
		return 125
	}
	if err := seccomp.Install(seccomp.Options{}); err != nil {
		return report(err)
	}
	fd, err := seccomp.InstallNotify(seccomp.Options{})
	if err != nil {
		return report(err)
	}
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	if err != nil || flags != unix.FD_CLOEXEC {
		return report(fmt.Errorf("descriptor flags %#x, %v", flags, err))
	}
	asked := make(chan int32, 100)
	go func() {
		for {
			var n notification
			_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&n)))
			if errno == unix.EINTR {
				continue
			}
			if errno != 0 {
				fmt.Fprintln(os.Stderr, "receive:", errno)
				os.Exit(125)
			}
			asked <- n.Number
			reply := answer{ID: n.ID, Flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
			if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&reply))); errno != 0 {
				fmt.Fprintln(os.Stderr, "send:", errno)
				os.Exit(125)
			}
		}
	}()
	if err := os.WriteFile("one", nil, 0o600); err != nil {
		return report(err)
	}
	if err := os.Rename("one", "two"); err != nil {
		return report(err)
	}
	if len(asked) != 1 {
		return report(fmt.Errorf("asked about %d renames of this thread, made 1", len(asked)))
	}
	if out, err := exec.Command("mv", "two", "three").CombinedOutput(); err != nil {
		return report(fmt.Errorf("mv: %w: %s", err, out))
	}
	if _, err := os.Stat("three"); err != nil {
		return report(err)
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_UNSHARE, unix.CLONE_NEWUSER, 0, 0); errno != unix.EPERM {
		return report(fmt.Errorf("unshare under both filters: %v", errno))
	}
	if _, err := seccomp.InstallNotify(seccomp.Options{}); fault.KindOf(err) != fault.Conflict {
		return report(fmt.Errorf("a second listener: %w", err))
	}
	// Another thread of this process is not under the filter.
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		done <- os.Rename("three", "four")
	}()
	before := len(asked)
	if err := <-done; err != nil {
		return report(err)
	}
	fmt.Println("asked:", before, "more:", len(asked)-before)
	return 0
}
