package stage

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"

	"github.com/litterbox-sandbox/litterbox/internal/driver/netns"
	"github.com/litterbox-sandbox/litterbox/internal/guest/egress"
	"github.com/litterbox-sandbox/litterbox/internal/process"
	"golang.org/x/sys/unix"
)

// enter makes the assembled root the only one and becomes the guest. It runs
// as PID 1 of the sandbox's pid namespace, with all capabilities of its user
// namespace, which it gives up here for good. The sockets are handed on.
func enter(config Config, data []byte, sockets *egress.DatagramSockets) error {
	steps := []action{
		{"make mounts private", func() error { return unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "") }},
		// Not at clone(2), where the root of the namespace would be the group of the
		// process that clones into another one (CLONE_INTO_CGROUP).
		{"hide the control groups above", func() error { return unix.Unshare(unix.CLONE_NEWCGROUP) }},
		{"set the host name", func() error { return unix.Sethostname([]byte(config.Hostname)) }},
		{"unlock the root", func() error { return unlock(config) }},
		// A new proc needs a fully visible proc in the same mount namespace
		// (mount_too_revealing), so it is mounted before the old root goes.
		{"mount /proc", func() error { return mountProc("proc", config.Quotas) }},
		{"mount /dev/pts", func() error {
			return unix.Mount("devpts", "dev/pts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620,max="+strconv.Itoa(terminals))
		}},
		{"change the root", func() error {
			// The old root is stacked on the new one's mount point and taken
			// away as a whole: pivot_root(2), "pivot_root(".", ".")".
			if err := unix.PivotRoot(".", "."); err != nil {
				return err
			}
			if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
				return err
			}
			return os.Chdir("/")
		}},
		{"enter the workspace", func() error { return os.Chdir(config.Workspace.Path) }},
	}
	self, err := unix.Open("/proc/self/exe", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("cannot open our own program: %w", err)
	}
	if err := perform(steps); err != nil {
		return err
	}
	input, err := dataFile("config", data)
	if err != nil {
		return err
	}
	if err := unix.Dup3(int(input), configFD, 0); err != nil {
		return fmt.Errorf("cannot hand on the configuration: %w", err)
	}
	// Descriptors beyond ours may come from the program that started litterbox; Go
	// marks only its own as close-on-exec (compare CVE-2024-21626).
	if err := process.CloseOnExec(statusFD + 1); err != nil {
		return fmt.Errorf("cannot close inherited descriptors: %w", err)
	}
	if sockets != nil {
		if err := netns.HandOver(*sockets); err != nil {
			return fmt.Errorf("cannot hand on the sockets for datagrams: %w", err)
		}
	}
	if err := netns.OpenDiag(); err != nil {
		return fmt.Errorf("cannot hand on a socket for questions about sockets: %w", err)
	}
	if err := errors.Join(config.Limits.set(), shareLimits()); err != nil {
		return err
	}
	if err := dropPrivileges(config, self); err != nil {
		return err
	}
	argv := []string{"litterbox-guest", VerbGuest}
	err = process.Become(self, argv, []string{})
	if config.Base != nil && errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("%w: it is linked against a C library that the base image lacks; build litterbox with CGO_ENABLED=0", err)
	}
	return err
}

// unlock makes the new root the current directory and a mount that
// pivot_root takes. Mounts that came along from a more privileged mount
// namespace are locked to their place; a recursive clone is not.
func unlock(config Config) error {
	if config.Shift == 0 {
		return os.Chdir(config.top())
	}
	if config.Base != nil {
		// By its name below the working directory: our ids cannot walk through the
		// directories above.
		if err := os.Chdir(baseDir); err != nil {
			return err
		}
	}
	tree, err := unix.OpenTree(unix.AT_FDCWD, ".", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return err
	}
	defer unix.Close(tree)
	if err := unix.MoveMount(tree, "", unix.AT_FDCWD, ".", unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return err
	}
	return unix.Fchdir(tree)
}

// scatter makes process numbers begin at a different one each time. A server
// that was killed leaves its number in a file (PostgreSQL's postmaster.pid),
// and refuses to start again when another process has it; in a pid namespace
// the next start would give the same few numbers to others.
func scatter(proc string) {
	last := strconv.Itoa(300 + rand.IntN(30000))
	// pid_namespaces(7), ns_last_pid; missing without CONFIG_CHECKPOINT_RESTORE,
	// which does no harm.
	_ = os.WriteFile(filepath.Join(proc, "sys/kernel/ns_last_pid"), []byte(last), 0)
}

func mountProc(at string, quotas Quotas) error {
	if err := unix.Mount("proc", at, "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return err
	}
	scatter(at)
	// While it can still be written; no other namespace is made from here on.
	if err := quotas.setNamespace(at); err != nil {
		return err
	}
	for _, name := range procReadOnly {
		path := filepath.Join(at, name)
		err := unix.Mount(path, path, "", unix.MS_BIND|unix.MS_REC, "")
		if errors.Is(err, unix.ENOENT) {
			continue
		}
		if err == nil {
			err = unix.Mount("", path, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
		}
		if err != nil {
			return fmt.Errorf("cannot make %q read-only: %w", path, err)
		}
	}
	for _, name := range procMasked {
		path := filepath.Join(at, name)
		info, err := os.Lstat(path)
		if err != nil {
			continue // this kernel does not have it
		}
		if info.IsDir() {
			err = unix.Mount("litterbox", path, "tmpfs", unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "size=0,mode=555")
		} else {
			err = unix.Mount("dev/null", path, "", unix.MS_BIND, "")
		}
		if err != nil {
			return fmt.Errorf("cannot mask %q: %w", path, err)
		}
	}
	return nil
}
