//go:build linux

package seccomp

import (
	"math"

	"golang.org/x/sys/unix"
)

// Which error a denied call returns is part of the policy: EPERM where programs
// ask and accept a refusal, ENOSYS where the C library or the program then uses
// an older call, and the error of a kernel without the feature where programs
// only know that.

// The halves and widths of arguments, for masks: the kernel's parameter type.
const (
	asInt  = 0xffffffff // int, unsigned int; and unsigned long with flags below 2^32
	asMode = 0xffff     // umode_t
)

// namespaceFlags are the CLONE_NEW* flags of clone(2). CLONE_NEWTIME (0x80) is
// missing because clone takes that bit as part of the exit signal.
const namespaceFlags = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// setID are the mode bits that make a program run as its owner.
const setID = unix.S_ISUID | unix.S_ISGID

// tmpfile is __O_TMPFILE: unix.O_TMPFILE also holds O_DIRECTORY, which has
// another value on arm64.
const tmpfile = 0o20000000

// From sys/personality.h; none are in x/sys.
const (
	perLinux32      = 0x8
	uname26         = 0x20000
	addrNoRandomize = 0x40000
)

func has(arg int, bits uint64) Test {
	return Test{Arg: arg, Mask: bits, Values: []uint64{0}, Not: true}
}

func is(arg int, mask uint64, values ...uint64) Test {
	return Test{Arg: arg, Mask: mask, Values: values}
}

func not(arg int, mask uint64, values ...uint64) Test {
	return Test{Arg: arg, Mask: mask, Values: values, Not: true}
}

// table is the whole policy. Left out on purpose: ptrace and process_vm_*
// (debuggers work; PID 1 is not dumpable), seccomp itself (a filter on top can
// only deny more), names of extended attributes (seccomp cannot read them),
// locks (flock(2) and fcntl(2): builds need them, and seccomp cannot see whose
// file it is), and setns's cousins that only read (statmount, listmount).
func table() []Rule {
	const eperm, enosys = unix.EPERM, unix.ENOSYS
	return []Rule{
		// Namespaces and mounts.
		{
			Calls: []string{"clone3"}, Verdict: Fail(enosys),
			Why: "its flags lie in memory, where seccomp cannot read them; libc falls back to clone",
		},
		{
			Calls: []string{"clone"}, When: []Test{has(0, namespaceFlags)}, Verdict: Fail(eperm), Nested: true,
			Why: "a user namespace hands out capabilities over kernel code that expects root",
		},
		{
			Calls: []string{"unshare"}, When: []Test{has(0, namespaceFlags|unix.CLONE_NEWTIME)}, Verdict: Fail(eperm), Nested: true,
			Why: "as clone; the other flags of unshare stay",
		},
		{
			Calls: []string{"setns"}, Verdict: Fail(eperm), Nested: true,
			Why: "no re-entry into another namespace through a descriptor that leaked",
		},
		{
			Calls: []string{
				"mount", "umount2", "pivot_root", "chroot", "open_tree", "open_tree_attr", "move_mount",
				"fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr",
			},
			Verdict: Fail(eperm), Nested: true,
			Why: "the mounts are the first wall; file system parsers are a favourite of exploits",
		},
		{
			Calls: []string{"sethostname", "setdomainname"}, Verdict: Fail(eperm), Nested: true,
			Why: "the name of the sandbox is the host's to give",
		},
		{
			Calls: []string{"open_by_handle_at"}, Verdict: Fail(eperm),
			Why: "opens by inode number, past every mount (the shocker exploit)",
		},
		{
			Calls: []string{"listns"}, Verdict: Fail(enosys),
			Why: "enumerates namespaces; too new (6.19) for anything to need it",
		},

		// Kernel subsystems that no build or test needs.
		{
			Calls: []string{"bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "io_uring_enter", "io_uring_register", "fanotify_init"}, Verdict: Fail(eperm),
			Why: "large, young attack surface; io_uring also makes calls that no filter sees; the sysctls that restrict them answer EPERM as well",
		},
		{
			Calls: []string{"keyctl", "add_key", "request_key"}, Verdict: Fail(enosys),
			Why: "keyrings are not namespaced by anything but the user; ENOSYS is a kernel without CONFIG_KEYS, which container runtimes take and EPERM is not",
		},
		{
			Calls: []string{"kcmp", "pidfd_getfd"}, Verdict: Fail(eperm),
			Why: "look into and take from other processes' descriptor tables; kcmp also orders kernel addresses",
		},

		// The machine.
		{
			Calls: []string{"kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module", "reboot", "swapon", "swapoff", "acct", "quotactl", "quotactl_fd", "syslog", "vhangup"}, Verdict: Fail(eperm),
			Why: "administration of the host; syslog reads its kernel log",
		},
		{
			Calls: []string{"settimeofday", "clock_settime", "clock_adjtime", "adjtimex"}, Verdict: Fail(eperm),
			Why: "the clock is everybody's",
		},
		{
			Calls: []string{"iopl", "ioperm"}, Verdict: Fail(eperm),
			Why: "I/O ports",
		},
		{
			Calls: []string{"modify_ldt"}, Verdict: Fail(enosys),
			Why: "segments for 16-bit code, again and again a way into the kernel; a kernel without CONFIG_MODIFY_LDT_SYSCALL says ENOSYS",
		},
		{
			Calls: []string{
				"uselib", "ustat", "sysfs", "_sysctl", "lookup_dcookie", "nfsservctl", "create_module", "get_kernel_syms",
				"query_module", "afs_syscall", "tuxcall", "security", "vserver", "getpmsg", "putpmsg", "epoll_ctl_old", "epoll_wait_old",
			},
			Verdict: Fail(enosys),
			Why:     "obsolete: newer kernels answer ENOSYS themselves",
		},
		{
			// Allowed are reading it (0xffffffff) and 0, with what `setarch -R`,
			// `linux32` and `setarch --uname-2.6` add. READ_IMPLIES_EXEC and
			// MMAP_PAGE_ZERO take protections of the process away.
			Calls: []string{"personality"}, Verdict: Fail(eperm),
			When: []Test{
				not(0, asInt, 0xffffffff),
				has(0, asInt&^(addrNoRandomize|perLinux32|uname26)),
			},
			Why: "other personalities are foreign execution domains",
		},

		// Terminals.
		{
			// The numbers are those of asm-generic/ioctls.h, on both architectures.
			Calls: []string{"ioctl"}, Verdict: Fail(eperm),
			When: []Test{is(1, asInt, unix.TIOCSTI, unix.TIOCLINUX, unix.TIOCCONS, unix.TIOCSETD)},
			Why:  "TIOCSTI types into the terminal of an attached user, TIOCLINUX pastes, TIOCCONS takes the console, TIOCSETD loads line disciplines (CVE-2017-2636)",
		},

		// Commands of open files.
		{
			Calls: []string{"ioctl"}, Verdict: Fail(unix.EOPNOTSUPP), When: []Test{is(1, asInt, unix.SIOCETHTOOL)},
			Why: "what the loopback interface says to most of it; psutil.net_if_stats takes no other error",
		},
		{
			Calls: []string{"ioctl"}, Verdict: Fail(unix.ENOTTY), Nested: true,
			When: []Test{not(1, asInt, numbers(ioctls())...)},
			Why:  "an allow-list (requests.go): the others change inodes without writing to them, or belong to one driver",
		},
		{
			Calls: []string{"ioctl"}, Verdict: Fail(unix.ENOTTY), Inner: true,
			When: []Test{not(1, asInt, numbers(ioctls(), innerIoctls())...)},
			Why:  "the same, with what sets up an inner network",
		},
		{
			Calls: []string{"fcntl"}, Verdict: Fail(unix.EINVAL),
			When: []Test{not(1, asInt, numbers(fcntls())...)},
			Why:  "an allow-list (requests.go): leases reach through read-only mounts and hold the host",
		},
		{
			Calls: []string{"file_setattr"}, Verdict: Fail(unix.EOPNOTSUPP),
			Why: "what FS_IOC_FSSETXATTR does, by a path (6.17)",
		},

		// Sockets. A network namespace bounds the Internet families only;
		// AF_VSOCK for one reaches the hypervisor from any of them.
		{
			Calls: []string{"socket", "socketpair"}, Verdict: Fail(unix.EAFNOSUPPORT),
			When: []Test{not(0, asInt, unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK)},
			Why:  "other families are rarely tested kernel code that loads itself (AF_ALG, AF_VSOCK, AF_TIPC…)",
		},
		{
			Calls: []string{"socket"}, Verdict: Fail(unix.EPROTONOSUPPORT), Nested: true,
			When: []Test{is(0, asInt, unix.AF_NETLINK), not(2, asInt, unix.NETLINK_ROUTE)},
			Why:  "route is what getifaddrs and ip need",
		},
		{
			Calls: []string{"socket"}, Verdict: Fail(unix.EPROTONOSUPPORT),
			When: []Test{is(0, asInt, unix.AF_NETLINK), not(2, asInt, unix.NETLINK_ROUTE, unix.NETLINK_NETFILTER)},
			Why:  "an inner container also sets up its own nftables",
		},
		{
			// The kernel looks at four bits of the type, SOCK_TYPE_MASK; the
			// rest are SOCK_CLOEXEC and SOCK_NONBLOCK.
			Calls: []string{"socket"}, Verdict: Fail(eperm),
			When: []Test{not(0, asInt, unix.AF_NETLINK), is(1, 0xf, unix.SOCK_RAW, unix.SOCK_PACKET)},
			Why:  "no packets of one's own making",
		},
		{
			Calls: []string{"socket"}, Verdict: Fail(unix.EPROTONOSUPPORT),
			When: []Test{
				is(0, asInt, unix.AF_INET, unix.AF_INET6),
				not(2, asInt, 0, unix.IPPROTO_ICMP, unix.IPPROTO_TCP, unix.IPPROTO_UDP, unix.IPPROTO_ICMPV6, unix.IPPROTO_MPTCP),
			},
			Why: "SCTP, DCCP, L2TP and SMC load themselves at this call",
		},

		// Files. A set-user-ID file in the upper layer is harmless inside
		// (nosuid, no_new_privs), but on the host it is a program that runs as the
		// user, and git carries no such bits out anyway. On a directory the
		// set-group-ID bit only says which group new files get, and git wants it
		// (core.sharedRepository): commands ask the guest for it (see [Watched]),
		// which sets it on directories. mkdir is missing because the kernel takes no
		// such bits from it; a directory inherits S_ISGID from its parent. The cost,
		// as tested: tar without -p and git do not notice; `tar -p` and `cp -a` of
		// such files copy them, without the bits, and exit non-zero; npm leaves such
		// a file of a package out with a warning.
		{
			Calls: []string{"chmod", "fchmod"}, When: []Test{has(1, unix.S_ISUID)}, Verdict: Fail(eperm), Nested: true, Asked: true,
			Why: "no set-user-ID files in what the host keeps; for S_ISGID see Watched and Attributes",
		},
		{
			Calls: []string{"fchmodat", "fchmodat2"}, When: []Test{has(2, unix.S_ISUID)}, Verdict: Fail(eperm), Nested: true, Asked: true,
			Why: "as chmod",
		},
		{
			Calls: []string{"creat"}, When: []Test{has(1, setID)}, Verdict: Fail(eperm), Nested: true,
			Why: "as chmod, and what is made here is never a directory",
		},
		{
			Calls: []string{"open"}, When: []Test{has(1, unix.O_CREAT|tmpfile), has(2, setID)}, Verdict: Fail(eperm), Nested: true,
			Why: "as chmod; without these flags the mode is not looked at and may be anything",
		},
		{
			Calls: []string{"openat"}, When: []Test{has(2, unix.O_CREAT|tmpfile), has(3, setID)}, Verdict: Fail(eperm), Nested: true,
			Why: "as open",
		},
		{
			Calls: []string{"openat2"}, Verdict: Fail(enosys), Nested: true,
			Why: "its mode lies in memory, where seccomp cannot read it; programs fall back to openat (before kernel 5.6 they must)",
		},
		{
			Calls: []string{"mknod"}, When: []Test{has(1, setID)}, Verdict: Fail(eperm), Nested: true,
			Why: "as chmod: mknod makes regular files too",
		},
		{
			Calls: []string{"mknodat"}, When: []Test{has(2, setID)}, Verdict: Fail(eperm), Nested: true,
			Why: "as mknod",
		},
		{
			Calls: []string{"mknod"}, When: []Test{is(1, asMode&unix.S_IFMT, unix.S_IFBLK, unix.S_IFCHR)}, Verdict: Fail(eperm), Nested: true,
			Why: "no devices; 0:0 is one that user namespaces may make (5.8), and overlayfs reads it as a deleted file",
		},
		{
			Calls: []string{"mknodat"}, When: []Test{is(2, asMode&unix.S_IFMT, unix.S_IFBLK, unix.S_IFCHR)}, Verdict: Fail(eperm), Nested: true,
			Why: "as mknod",
		},
		{
			Calls: []string{"renameat2"}, When: []Test{has(4, unix.RENAME_WHITEOUT)}, Verdict: Fail(unix.EINVAL), Nested: true,
			Why: "leaves the device 0:0 behind that mknod refuses; file systems without it say EINVAL",
		},
	}
}

// Watched is the policy of [InstallNotify].
func Watched(opts Options) Policy {
	policy := Policy{Unknown: Allow, Rules: []Rule{{
		Calls: []string{"rename", "renameat", "renameat2"}, Verdict: Notify,
		Why: "overlayfs answers EXDEV for a directory of the lower layer",
	}}}
	policy.Rules = append(policy.Rules, Rule{
		Calls: []string{"prlimit64"}, When: []Test{not(0, asInt, 0), not(2, math.MaxUint64, 0)}, Verdict: Notify,
		Why: "the limits of the guest could be set; reading limits, and setting one's own, go on unasked",
	})
	if opts.Nested {
		// Every bit may be set; and a process with all capabilities of an inner user
		// namespace passes the kernel's own check of scheduling.
		policy.Rules = append(policy.Rules, scheduling()...)
		return policy
	}
	why, bits := "for a directory only, which seccomp cannot see", uint64(unix.S_ISGID)
	if opts.Install {
		why, bits = "packages have such programs: they are installed without the bits", setID
	}
	policy.Rules = append(policy.Rules,
		Rule{Calls: []string{"chmod", "fchmod"}, When: []Test{has(1, bits)}, Verdict: Notify, Why: why},
		Rule{Calls: []string{"fchmodat", "fchmodat2"}, When: []Test{has(2, bits)}, Verdict: Notify, Why: why},
	)
	return policy
}

// scheduling asks about calls that change the scheduling of another process.
func scheduling() []Rule {
	const why = "a guest that never runs serves no one"
	return []Rule{
		{
			Calls: []string{"sched_setaffinity", "sched_setscheduler", "sched_setparam", "sched_setattr"}, When: []Test{not(0, asInt, 0)},
			Verdict: Notify, Why: why,
		},
		{Calls: []string{"setpriority"}, When: []Test{not(0, asInt, unix.PRIO_PROCESS)}, Verdict: Notify, Why: why},
		{Calls: []string{"setpriority"}, When: []Test{not(1, asInt, 0)}, Verdict: Notify, Why: why},
		{Calls: []string{"ioprio_set"}, When: []Test{not(0, asInt, ioprioProcess)}, Verdict: Notify, Why: why},
		{Calls: []string{"ioprio_set"}, When: []Test{not(1, asInt, 0)}, Verdict: Notify, Why: why},
	}
}

// ioprioProcess is IOPRIO_WHO_PROCESS of linux/ioprio.h.
const ioprioProcess = 1
