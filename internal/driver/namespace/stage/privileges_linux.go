package stage

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"unsafe"

	"github.com/landlock-lsm/go-landlock/landlock"
	llsyscall "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"github.com/litterbox-sandbox/litterbox/internal/driver/seccomp"
	"golang.org/x/sys/unix"
)

// dropPrivileges leaves the calling thread with no capability but one that means
// nothing, no way to gain another, Landlock as a second wall and the seccomp filter. The order matters:
// ids need CAP_SETUID, the bounding set CAP_SETPCAP, and seccomp comes last
// because it forbids some of what stands before it.
func dropPrivileges(config Config, self int) error {
	if config.Shift != 0 {
		if err := takeIDs(config.User.UID, config.User.GID); err != nil {
			return err
		}
	}
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		// Unknown capabilities of an older kernel answer EINVAL.
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil && err != unix.EINVAL {
			return fmt.Errorf("cannot drop capability %d: %w", c, err)
		}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("cannot clear ambient capabilities: %w", err)
	}
	// PID 1 keeps one capability, which keeps the scheduling of PID 1 from its
	// children and is good for nothing else (internal/guest/overlay/others_linux.go).
	// Only an ambient one survives exec, and the secure bits forbid to raise any.
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var held [2]unix.CapUserData
	if err := unix.Capget(&header, &held[0]); err != nil {
		return fmt.Errorf("cannot read the capabilities: %w", err)
	}
	const word, bit = unix.CAP_BLOCK_SUSPEND / 32, 1 << (unix.CAP_BLOCK_SUSPEND % 32)
	held[0].Inheritable, held[1].Inheritable = 0, 0
	held[word].Inheritable = bit
	if err := unix.Capset(&header, &held[0]); err != nil {
		return fmt.Errorf("cannot set what PID 1 inherits: %w", err)
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, unix.CAP_BLOCK_SUSPEND, 0, 0); err != nil {
		return fmt.Errorf("cannot let PID 1 stand apart from its children: %w", err)
	}
	// NOROOT, NO_SETUID_FIXUP, NO_CAP_AMBIENT_RAISE and their locks
	// (capabilities(7), "The securebits flags").
	const locked = 1<<0 | 1<<1 | 1<<2 | 1<<3 | 1<<6 | 1<<7
	if err := unix.Prctl(unix.PR_SET_SECUREBITS, locked, 0, 0, 0); err != nil {
		return fmt.Errorf("cannot lock the secure bits: %w", err)
	}
	held = [2]unix.CapUserData{}
	held[word] = unix.CapUserData{Permitted: bit, Inheritable: bit}
	if err := unix.Capset(&header, &held[0]); err != nil {
		return fmt.Errorf("cannot drop capabilities: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("cannot set no_new_privs: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("cannot hide from debuggers: %w", err)
	}
	// Landlock refuses every mount operation, which is what nested sandboxes
	// need; there namespaces and seccomp stand alone.
	if !config.Nested {
		if err := restrictPaths(config, self); err != nil {
			return err
		}
	}
	if err := seccomp.Install(seccomp.Options{Nested: config.Nested}); err != nil {
		return fmt.Errorf("cannot install the seccomp filter: %w", err)
	}
	return nil
}

// takeIDs gives up the ids of whoever started us. Raw system calls: the Go
// functions act on all threads, and only this one goes on.
func takeIDs(uid, gid int) error {
	if _, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0); errno != 0 {
		return fmt.Errorf("cannot leave supplementary groups: %w", errno)
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESGID, uintptr(gid), uintptr(gid), uintptr(gid)); errno != 0 {
		return fmt.Errorf("cannot set the group id: %w", errno)
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid)); errno != 0 {
		return fmt.Errorf("cannot set the user id: %w", errno)
	}
	return nil
}

// restrictPaths is the second wall: even if a mount were writable by mistake,
// only these directories can be written. REFER lets files move between them.
// Where the kernel has no Landlock the first wall stands alone; doctor says so.
func restrictPaths(config Config, self int) error {
	if version, err := llsyscall.LandlockGetABIVersion(); err != nil || version < 1 {
		return nil
	}
	write := []string{config.Workspace.Path, config.Home, "/tmp", "/var/tmp", "/run", "/dev", "/proc"}
	for _, cache := range config.Caches {
		write = append(write, cache.Target)
	}
	var existing []string
	for _, dir := range write {
		if _, err := os.Stat(dir); err == nil {
			existing = append(existing, dir)
		}
	}
	rules := []landlock.Rule{
		landlock.RODirs("/").WithIoctlDev(),
		landlock.RWDirs(existing...).WithRefer().WithIoctlDev(),
	}
	// Our own program, which execveat is about to run, lies outside of the new
	// root. What lies in no directory at all Landlock lets everybody execute,
	// and answers EBADFD to a rule for it (landlock_add_rule(2)).
	if !inMemory(self) {
		rules = append(rules, landlock.ROFiles(fmt.Sprintf("/proc/self/fd/%d", self)))
	}
	if err := landlock.V5.BestEffort().RestrictPaths(rules...); err != nil {
		return fmt.Errorf("cannot restrict paths with Landlock: %w", err)
	}
	return nil
}

// inMemory tells whether a file was made by memfd_create(2), as the program is
// where its file system is mounted noexec.
func inMemory(fd int) bool {
	name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	var st unix.Stat_t
	return err == nil && strings.HasPrefix(name, "/memfd:") && unix.Fstat(fd, &st) == nil && st.Nlink == 0
}

// execveat replaces this process by the program behind fd, which the new root
// does not contain.
func execveat(fd int, argv, env []string) error {
	arguments, err := syscall.SlicePtrFromStrings(argv)
	if err != nil {
		return err
	}
	environment, err := syscall.SlicePtrFromStrings(env)
	if err != nil {
		return err
	}
	empty, err := unix.BytePtrFromString("")
	if err != nil {
		return err
	}
	_, _, errno := unix.RawSyscall6(unix.SYS_EXECVEAT, uintptr(fd), uintptr(unsafe.Pointer(empty)),
		uintptr(unsafe.Pointer(&arguments[0])), uintptr(unsafe.Pointer(&environment[0])), unix.AT_EMPTY_PATH, 0)
	runtime.KeepAlive(arguments)
	runtime.KeepAlive(environment)
	return fmt.Errorf("cannot become the guest: %w", errno)
}
