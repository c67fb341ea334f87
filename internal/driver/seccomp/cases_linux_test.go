package seccomp_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/driver/seccomp"
	"golang.org/x/sys/unix"
)

// sample is a call as a program may try it, with the promised answer. The
// samples are written by hand, not taken from the table: they are the purpose
// of the table.
type sample struct {
	Call   string
	Args   [6]uint64
	Errno  unix.Errno // 0: allowed
	Nested unix.Errno // the same under Options.Nested
}

const (
	eperm   = unix.EPERM
	enosys  = unix.ENOSYS
	garbage = 0xdead_beef << 32 // bits above an int, which the kernel ignores
	bad     = ^uint64(0)        // a bad pointer, descriptor, flag and command
)

func samples() []sample {
	var all []sample
	always := func(errno, nested unix.Errno, calls ...string) {
		for _, call := range calls {
			all = append(all, sample{call, [6]uint64{bad, bad, bad, bad, bad, bad}, errno, nested})
		}
	}
	always(eperm, 0, "mount", "umount2", "pivot_root", "chroot", "setns", "open_tree", "open_tree_attr", "move_mount",
		"fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr", "sethostname", "setdomainname")
	always(eperm, eperm, "bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "io_uring_enter", "io_uring_register",
		"fanotify_init", "kcmp", "pidfd_getfd", "kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module",
		"reboot", "swapon", "swapoff", "acct", "quotactl", "quotactl_fd", "syslog", "vhangup", "settimeofday", "clock_settime",
		"clock_adjtime", "adjtimex", "iopl", "ioperm", "open_by_handle_at")
	always(enosys, enosys, "clone3", "keyctl", "add_key", "request_key", "modify_ldt", "uselib", "ustat", "sysfs", "_sysctl",
		"lookup_dcookie", "nfsservctl", "listns")
	always(enosys, 0, "openat2")

	add := func(errno, nested unix.Errno, call string, args ...uint64) {
		s := sample{Call: call, Errno: errno, Nested: nested}
		copy(s.Args[:], args)
		all = append(all, s)
	}
	for _, flag := range []uint64{unix.CLONE_NEWNS, unix.CLONE_NEWCGROUP, unix.CLONE_NEWUTS, unix.CLONE_NEWIPC, unix.CLONE_NEWUSER, unix.CLONE_NEWPID, unix.CLONE_NEWNET} {
		add(eperm, 0, "clone", flag|uint64(unix.SIGCHLD))
		add(eperm, 0, "clone", flag|uint64(unix.SIGCHLD)|garbage)
		add(eperm, 0, "unshare", flag)
	}
	add(eperm, 0, "unshare", unix.CLONE_NEWTIME)
	add(0, 0, "unshare", unix.CLONE_FS)

	// Terminals, also with the bits that passed CVE-2019-7303.
	for _, request := range []uint64{unix.TIOCSTI, unix.TIOCLINUX, unix.TIOCCONS, unix.TIOCSETD} {
		add(eperm, eperm, "ioctl", bad, request, bad)
		add(eperm, eperm, "ioctl", bad, request|garbage, bad)
	}
	for _, request := range []uint64{unix.TIOCGWINSZ, unix.TCGETS, unix.TIOCSCTTY, unix.TIOCGPTPEER, unix.TIOCINQ, unix.FICLONE, unix.FICLONERANGE, unix.SIOCGIFCONF, unix.FS_IOC_GETFLAGS} {
		add(0, 0, "ioctl", bad, request, bad)
		add(0, 0, "ioctl", bad, request|garbage, bad)
	}
	// Commands that change inodes, and those of a single driver.
	for _, request := range []uint64{
		unix.FS_IOC_SETFLAGS, 0x401c5820 /* FSSETXATTR */, 0x40087602 /* SETVERSION */, unix.FS_IOC_SET_ENCRYPTION_POLICY, unix.FS_IOC_ENABLE_VERITY,
		unix.FIDEDUPERANGE, 0x5000940e /* BTRFS_IOC_SUBVOL_CREATE */, 0x50009417 /* BTRFS_IOC_SNAP_CREATE_V2 */, unix.BLKPG, 0xc0045877 /* FIFREEZE */, 0xc0185879, /* FITRIM */
		unix.LOOP_SET_FD, unix.TUNSETIFF, 0xae01 /* KVM_CREATE_VM */, 0, bad,
	} {
		add(unix.ENOTTY, unix.ENOTTY, "ioctl", bad, request, bad)
		add(unix.ENOTTY, unix.ENOTTY, "ioctl", bad, request|garbage, bad)
	}
	add(unix.ENOTTY, 0, "ioctl", bad, unix.SIOCSIFFLAGS, bad)
	add(unix.EOPNOTSUPP, unix.EOPNOTSUPP, "ioctl", bad, unix.SIOCETHTOOL, bad)

	// Leases, and the other commands left out of fcntl.
	for _, command := range []uint64{unix.F_SETLEASE, unix.F_SETDELEG, unix.F_NOTIFY, unix.F_SET_RW_HINT, unix.F_SET_FILE_RW_HINT, 1 << 20, bad} {
		add(unix.EINVAL, unix.EINVAL, "fcntl", bad, command, bad)
		add(unix.EINVAL, unix.EINVAL, "fcntl", bad, command|garbage, bad)
	}
	for _, command := range []uint64{unix.F_DUPFD, unix.F_DUPFD_CLOEXEC, unix.F_GETFL, unix.F_SETFL, unix.F_SETFD, unix.F_SETLK, unix.F_OFD_SETLK, unix.F_SETPIPE_SZ, unix.F_ADD_SEALS, unix.F_GETLEASE} {
		add(0, 0, "fcntl", bad, command, bad)
	}
	always(unix.EOPNOTSUPP, unix.EOPNOTSUPP, "file_setattr")
	for _, flag := range []uint64{unix.RENAME_WHITEOUT, unix.RENAME_WHITEOUT | unix.RENAME_NOREPLACE, unix.RENAME_WHITEOUT | garbage} {
		add(unix.EINVAL, 0, "renameat2", bad, bad, bad, bad, flag)
	}
	add(0, 0, "renameat2", bad, bad, bad, bad, unix.RENAME_EXCHANGE)

	const inet, netlink, stream, raw = unix.AF_INET, unix.AF_NETLINK, unix.SOCK_STREAM | unix.SOCK_CLOEXEC, unix.SOCK_RAW | unix.SOCK_CLOEXEC
	for _, family := range []uint64{unix.AF_VSOCK, unix.AF_ALG, unix.AF_PACKET, unix.AF_TIPC, unix.AF_BLUETOOTH, unix.AF_XDP, unix.AF_KEY, unix.AF_RDS} {
		add(unix.EAFNOSUPPORT, unix.EAFNOSUPPORT, "socket", family, raw)
		add(unix.EAFNOSUPPORT, unix.EAFNOSUPPORT, "socketpair", family, stream, 0, bad)
	}
	for _, family := range []uint64{unix.AF_UNIX, inet, unix.AF_INET6, inet | garbage} {
		add(0, 0, "socket", family, stream)
		add(eperm, eperm, "socket", family, raw)
		add(eperm, eperm, "socket", family, unix.SOCK_PACKET|garbage)
	}
	add(0, 0, "socket", netlink, raw, unix.NETLINK_ROUTE)
	add(unix.EPROTONOSUPPORT, 0, "socket", netlink, raw, unix.NETLINK_NETFILTER)
	for _, protocol := range []uint64{unix.NETLINK_GENERIC, unix.NETLINK_AUDIT, unix.NETLINK_KOBJECT_UEVENT, unix.NETLINK_XFRM, unix.NETLINK_SOCK_DIAG} {
		add(unix.EPROTONOSUPPORT, unix.EPROTONOSUPPORT, "socket", netlink, raw, protocol)
	}
	add(0, 0, "socket", inet, stream, unix.IPPROTO_TCP)
	for _, protocol := range []uint64{unix.IPPROTO_SCTP, unix.IPPROTO_DCCP, 115 /* L2TP */, 256 /* SMC */} {
		add(unix.EPROTONOSUPPORT, unix.EPROTONOSUPPORT, "socket", inet, stream, protocol)
	}

	for _, mode := range []uint64{0o4755, 0o2755, 0o6644, 0o4000 | garbage} {
		forChmod := eperm
		if mode&unix.S_ISUID == 0 {
			forChmod = 0 // see Watched
		}
		add(forChmod, 0, "chmod", bad, mode)
		add(forChmod, 0, "fchmod", bad, mode)
		add(forChmod, 0, "fchmodat", bad, bad, mode)
		add(forChmod, 0, "fchmodat2", bad, bad, mode)
		add(eperm, 0, "creat", bad, mode)
		add(eperm, 0, "open", bad, unix.O_CREAT|unix.O_WRONLY, mode)
		add(eperm, 0, "openat", bad, bad&^1, unix.O_CREAT, mode)
		add(eperm, 0, "openat", bad, bad, unix.O_TMPFILE, mode)
		add(0, 0, "open", bad, unix.O_RDONLY, mode)
		add(0, 0, "openat", bad, bad, unix.O_DIRECTORY, mode)
		add(eperm, 0, "mknod", bad, unix.S_IFREG|mode)
		add(eperm, 0, "mknodat", bad, bad, unix.S_IFREG|mode)
	}
	add(0, 0, "fchmod", bad, 0o1777)
	for _, kind := range []uint64{unix.S_IFBLK, unix.S_IFCHR} {
		add(eperm, 0, "mknod", bad, kind|0o644)
		add(eperm, 0, "mknodat", bad, bad, kind|0o644|garbage)
	}
	for _, kind := range []uint64{0, unix.S_IFREG, unix.S_IFIFO, unix.S_IFSOCK} {
		add(0, 0, "mknod", bad, kind|0o644)
		add(0, 0, "mknodat", bad, bad, kind|0o644)
	}

	for _, persona := range []uint64{0, 0x8, 0x40000, 0x40008, 0x60000, 0xffffffff} {
		add(0, 0, "personality", persona)
	}
	for _, persona := range []uint64{0x400000 /* READ_IMPLIES_EXEC */, 0x100000 /* MMAP_PAGE_ZERO */, 6, 0x40000 | 0x400000, 0x7fffffff} {
		add(eperm, eperm, "personality", persona)
	}

	for _, call := range []string{"ptrace", "process_vm_readv", "process_vm_writev", "seccomp", "setxattr", "rename", "landlock_restrict_self", "memfd_create", "execve"} {
		add(0, 0, call, bad, bad, bad, bad)
	}
	return all
}

func TestPromisedAnswers(t *testing.T) {
	t.Parallel()
	for _, arch := range arches() {
		for _, nested := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/nested=%t", arch.Name, nested), func(t *testing.T) {
				t.Parallel()
				machine := compile(t, arch, seccomp.Sandbox(seccomp.Options{Nested: nested}))
				covered := 0
				for _, s := range samples() {
					number := slices.Index(arch.Calls, s.Call)
					if number < 0 {
						continue // a call of the other architecture
					}
					covered++
					want := s.Errno
					if nested {
						want = s.Nested
					}
					verdict := machine.verdict(t, arch.Audit, uint32(number), s.Args)
					if verdict.Errno() != want || (want == 0 && verdict != seccomp.Allow) {
						t.Errorf("%s%#x: %v, promised %v", s.Call, s.Args, verdict, want)
					}
				}
				if covered < 100 {
					t.Errorf("only %d samples apply", covered)
				}
			})
		}
	}
}

// Which calls the guest is asked about. A call that also asks for S_ISUID is
// denied by the policy of Install, which is stricter.
func TestWatched(t *testing.T) {
	t.Parallel()
	for _, arch := range arches() {
		for _, nested := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/nested=%t", arch.Name, nested), func(t *testing.T) {
				t.Parallel()
				machine := compile(t, arch, seccomp.Watched(seccomp.Options{Nested: nested}))
				for call, at := range map[string]int{
					"rename": -1, "renameat": -1, "renameat2": -1, "chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2, "mkdir": 1, "openat": 3,
				} {
					number := slices.Index(arch.Calls, call)
					for mode, bit := range map[uint64]bool{0: false, 0o1777: false, 0o4755: false, 0o2000: true, 0o2755 | 1<<32: true, 0o6755: true} {
						var args [6]uint64
						chmod := strings.Contains(call, "chmod")
						if at >= 0 {
							args[at] = mode
						}
						want := seccomp.Allow
						if at < 0 || chmod && bit && !nested {
							want = seccomp.Notify
						}
						if number < 0 {
							continue // a call of the other architecture
						}
						if got := machine.verdict(t, arch.Audit, uint32(number), args); got != want {
							t.Errorf("%s with mode %#o: %v, want %v", call, mode, got, want)
						}
					}
				}
			})
		}
	}
}

// Calls that change another process go to the guest; reading, and changing
// oneself, does not.
func TestWatchedProcesses(t *testing.T) {
	t.Parallel()
	const allow, notify = seccomp.Allow, seccomp.Notify
	for _, arch := range arches() {
		watched := compile(t, arch, seccomp.Watched(seccomp.Options{}))
		nested := compile(t, arch, seccomp.Watched(seccomp.Options{Nested: true}))
		shared := compile(t, arch, seccomp.Attributes())
		for _, c := range []struct {
			call                    string
			args                    [6]uint64
			watched, nested, shared seccomp.Verdict
		}{
			{"prlimit64", [6]uint64{1, 7, 4096}, notify, notify, allow}, // refused by shared itself
			{"prlimit64", [6]uint64{1, 7, 1 << 40}, notify, notify, allow},
			{"prlimit64", [6]uint64{1, 7, 0, 4096}, allow, allow, allow},
			{"prlimit64", [6]uint64{garbage, 7, 4096}, allow, allow, allow},
			{"sched_setaffinity", [6]uint64{1}, allow, notify, notify},
			{"sched_setscheduler", [6]uint64{1}, allow, notify, notify},
			{"sched_setparam", [6]uint64{bad}, allow, notify, notify},
			{"sched_setattr", [6]uint64{1 | garbage}, allow, notify, notify},
			{"sched_setattr", [6]uint64{garbage}, allow, allow, allow},
			{"setpriority", [6]uint64{0, 1}, allow, notify, notify},
			{"setpriority", [6]uint64{1, 0}, allow, notify, notify},
			{"setpriority", [6]uint64{2, 1000}, allow, notify, notify},
			{"setpriority", [6]uint64{0, 0}, allow, allow, allow},
			{"ioprio_set", [6]uint64{1, 1}, allow, notify, notify},
			{"ioprio_set", [6]uint64{3, 0}, allow, notify, notify},
			{"ioprio_set", [6]uint64{1, 0}, allow, allow, allow},
		} {
			number := uint32(slices.Index(arch.Calls, c.call))
			got := [3]seccomp.Verdict{
				watched.verdict(t, arch.Audit, number, c.args), nested.verdict(t, arch.Audit, number, c.args), shared.verdict(t, arch.Audit, number, c.args),
			}
			if want := [3]seccomp.Verdict{c.watched, c.nested, c.shared}; got != want {
				t.Errorf("%s: %s%#x: %v, want %v", arch.Name, c.call, c.args, got, want)
			}
		}
	}
}

// Every call that the table denies outright must have a sample, so that the
// kernel is asked about it too.
func TestEveryDeniedCallHasASample(t *testing.T) {
	t.Parallel()
	tried := map[string]bool{}
	for _, s := range samples() {
		tried[s.Call] = tried[s.Call] || s.Errno != 0
	}
	// Numbers that were never given a body: the kernel itself returns ENOSYS.
	for _, call := range []string{"create_module", "get_kernel_syms", "query_module", "afs_syscall", "tuxcall", "security", "vserver", "getpmsg", "putpmsg", "epoll_ctl_old", "epoll_wait_old"} {
		tried[call] = true
	}
	for _, rule := range seccomp.Sandbox(seccomp.Options{}).Rules {
		for _, call := range rule.Calls {
			if !tried[call] {
				t.Errorf("no sample tries %s, which is denied because: %s", call, rule.Why)
			}
		}
		if rule.Why == "" {
			t.Errorf("no reason given for denying %q", rule.Calls)
		}
	}
}

// Where a package manager runs, calls that give files and the process away
// succeed without effect, and modes with set-id bits are asked about. Everything
// else is as in every sandbox.
func TestInstall(t *testing.T) {
	t.Parallel()
	const suid, sgid = unix.S_ISUID, unix.S_ISGID
	for _, arch := range arches() {
		ordinary := compile(t, arch, seccomp.Sandbox(seccomp.Options{}))
		install := compile(t, arch, seccomp.Sandbox(seccomp.Options{Install: true}))
		asked := compile(t, arch, seccomp.Watched(seccomp.Options{Install: true}))
		for _, c := range []struct {
			call                     string
			args                     [6]uint64
			ordinary, install, asked seccomp.Verdict
		}{
			{"fchownat", [6]uint64{}, seccomp.Allow, seccomp.Pretend, seccomp.Allow},
			{"setresuid", [6]uint64{}, seccomp.Allow, seccomp.Pretend, seccomp.Allow},
			{"setgroups", [6]uint64{}, seccomp.Allow, seccomp.Pretend, seccomp.Allow},
			{"fchmod", [6]uint64{3, suid | 0o755}, seccomp.Fail(unix.EPERM), seccomp.Allow, seccomp.Notify},
			{"fchmod", [6]uint64{3, sgid | 0o755}, seccomp.Allow, seccomp.Allow, seccomp.Notify},
			{"fchmodat", [6]uint64{3, 0, suid}, seccomp.Fail(unix.EPERM), seccomp.Allow, seccomp.Notify},
			{"fchmodat", [6]uint64{3, 0, 0o755}, seccomp.Allow, seccomp.Allow, seccomp.Allow},
			{"mknodat", [6]uint64{3, 0, unix.S_IFCHR}, seccomp.Fail(unix.EPERM), seccomp.Fail(unix.EPERM), seccomp.Allow},
			{"openat", [6]uint64{3, 0, unix.O_CREAT, suid}, seccomp.Fail(unix.EPERM), seccomp.Fail(unix.EPERM), seccomp.Allow},
			{"mount", [6]uint64{}, seccomp.Fail(unix.EPERM), seccomp.Fail(unix.EPERM), seccomp.Allow},
			{"chroot", [6]uint64{}, seccomp.Fail(unix.EPERM), seccomp.Fail(unix.EPERM), seccomp.Allow},
		} {
			number := uint32(slices.Index(arch.Calls, c.call))
			got := [3]seccomp.Verdict{
				ordinary.verdict(t, arch.Audit, number, c.args), install.verdict(t, arch.Audit, number, c.args), asked.verdict(t, arch.Audit, number, c.args),
			}
			if want := [3]seccomp.Verdict{c.ordinary, c.install, c.asked}; got != want {
				t.Errorf("%s: %s%#x: %v, want %v", arch.Name, c.call, c.args, got, want)
			}
		}
	}
}
