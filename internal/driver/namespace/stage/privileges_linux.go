package stage

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/driver/ruleset"
	"github.com/litterbox-sandbox/litterbox/internal/driver/seccomp"
)

// dropPrivileges leaves the calling thread with no capability but one that means
// nothing, no way to gain another, Landlock as a second wall and the seccomp filter. The order matters:
// ids need CAP_SETUID, the bounding set CAP_SETPCAP, and seccomp comes last because it forbids some of
// the steps before it.
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
	// PID 1 keeps one capability, which protects the scheduling of PID 1 from its
	// children and has no other use (internal/guest/overlay/others_linux.go). Only an
	// ambient one survives exec, and the secure bits forbid raising any.
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
	// Landlock refuses every mount operation, which nested sandboxes need; there
	// namespaces and seccomp stand alone.
	if !config.Nested {
		if err := restrictPaths(config, self); err != nil {
			return err
		}
	}
	if err := seccomp.Install(config.filter()); err != nil {
		return fmt.Errorf("cannot install the seccomp filter: %w", err)
	}
	return nil
}

// filter is the variant of the system call filter.
func (c Config) filter() seccomp.Options {
	return seccomp.Options{Nested: c.Nested, Install: c.installs()}
}

// takeIDs gives up the ids of our parent. Raw system calls: the Go functions
// act on all threads, and only this one goes on.
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
// only these directories can be written, and files move between them. If the
// kernel has no Landlock, or one that lets nothing move (before 5.19), the first
// wall stands alone; doctor reports it.
func restrictPaths(config Config, self int) error {
	if ruleset.ABI() < ruleset.MovesABI {
		return nil
	}
	rules, err := ruleset.New(ruleset.Domain{})
	if err != nil {
		return err
	}
	if err := rules.Allow("/", ruleset.Read|ruleset.Control); err != nil {
		return err
	}
	write := []string{config.Workspace.Path, config.Home, "/tmp", "/var/tmp", "/run", "/dev", "/proc"}
	for _, cache := range config.Caches {
		write = append(write, cache.Target)
	}
	write = append(write, liveWritable(config.Workspace.Live)...)
	if config.installs() { // the root itself is an image's, or cannot be written
		write = append(write, "/")
	}
	for _, dir := range write {
		if err := rules.Allow(dir, ruleset.Write|ruleset.Nodes|ruleset.Control); err != nil {
			return err
		}
	}
	for _, mount := range config.Mounts {
		if !mount.Writable {
			continue
		}
		// Without sockets: two sandboxes that share a directory could talk over them.
		if err := rules.Allow(mount.Target, ruleset.Write); err != nil {
			return err
		}
	}
	// Our own program, which execveat is about to run, lies outside the new root.
	if err := rules.AllowFile(self, ruleset.Read); err != nil {
		return err
	}
	return rules.Restrict()
}
