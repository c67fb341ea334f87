//go:build linux

package seccomp

import "golang.org/x/sys/unix"

// Request is one allowed command of ioctl(2) or fcntl(2), with its users.
//
// Both calls are allow-lists. Their commands are system calls of their own:
// new kernels and every driver add some, and for many a descriptor open for
// reading is enough, also through a read-only mount.
//
// To allow one: a line in its list, below, then read the difference that
// `go test ./internal/driver/seccomp -update` makes in testdata.
type Request struct {
	Name   string
	Number uint32
	Why    string
}

// numbers returns the commands as values of an argument.
func numbers(lists ...[]Request) []uint64 {
	var all []uint64
	for _, list := range lists {
		for _, request := range list {
			all = append(all, uint64(request.Number))
		}
	}
	return all
}

// fcntls are the commands of fcntl(2) that are allowed, the common ones first.
// Left out on purpose:
//
//   - F_SETLEASE and F_SETDELEG: a lease needs ownership and a descriptor that
//     is open for reading, so it reaches through read-only mounts, and blocks
//     every open of the file on the host for /proc/sys/fs/lease-break-time.
//   - F_NOTIFY: marks directories, also the host's, without any limit per user;
//     inotify(7) has replaced it.
//   - F_SET_RW_HINT and F_SET_FILE_RW_HINT: change the inode, through any
//     descriptor and, before Linux 6.9, of any owner.
//
// EINVAL is what kernels and file systems without a command return.
func fcntls() []Request {
	const descriptors, locks, signals, pipes, seals, reads = "descriptors", "locks of files", "signals on input (fcntl(2), F_SETOWN)",
		"sizes of pipes", "seals of memory files", "changes nothing"
	return []Request{
		{"F_GETFL", unix.F_GETFL, descriptors},
		{"F_SETFL", unix.F_SETFL, descriptors},
		{"F_GETFD", unix.F_GETFD, descriptors},
		{"F_SETFD", unix.F_SETFD, descriptors},
		{"F_DUPFD_CLOEXEC", unix.F_DUPFD_CLOEXEC, descriptors},
		{"F_DUPFD", unix.F_DUPFD, descriptors},
		{"F_SETLK", unix.F_SETLK, locks},
		{"F_SETLKW", unix.F_SETLKW, locks},
		{"F_GETLK", unix.F_GETLK, locks},
		{"F_OFD_SETLK", unix.F_OFD_SETLK, locks},
		{"F_OFD_SETLKW", unix.F_OFD_SETLKW, locks},
		{"F_OFD_GETLK", unix.F_OFD_GETLK, locks},
		{"F_SETOWN", unix.F_SETOWN, signals},
		{"F_GETOWN", unix.F_GETOWN, signals},
		{"F_SETOWN_EX", unix.F_SETOWN_EX, signals},
		{"F_GETOWN_EX", unix.F_GETOWN_EX, signals},
		{"F_SETSIG", unix.F_SETSIG, signals},
		{"F_GETSIG", unix.F_GETSIG, signals},
		{"F_GETOWNER_UIDS", 17, signals}, // asm-generic/fcntl.h; not in x/sys
		{"F_SETPIPE_SZ", unix.F_SETPIPE_SZ, pipes},
		{"F_GETPIPE_SZ", unix.F_GETPIPE_SZ, pipes},
		{"F_ADD_SEALS", unix.F_ADD_SEALS, seals},
		{"F_GET_SEALS", unix.F_GET_SEALS, seals},
		{"F_DUPFD_QUERY", unix.F_DUPFD_QUERY, reads},
		{"F_CREATED_QUERY", unix.F_CREATED_QUERY, reads},
		{"F_GETLEASE", unix.F_GETLEASE, reads},
		{"F_GETDELEG", unix.F_GETDELEG, reads},
		{"F_GET_RW_HINT", unix.F_GET_RW_HINT, reads},
		{"F_GET_FILE_RW_HINT", unix.F_GET_FILE_RW_HINT, reads},
	}
}

// ioctls are the commands of ioctl(2) that are allowed, the common ones first.
// The numbers are the same on both architectures; those missing from x/sys are
// from asm-generic/ioctls.h. Left out on purpose:
//
//   - Everything that changes an inode without being a write: FS_IOC_SETFLAGS,
//     FS_IOC_FSSETXATTR, FS_IOC_SETVERSION, FS_IOC_SET_ENCRYPTION_POLICY,
//     FS_IOC_ENABLE_VERITY. A descriptor open for reading is enough, and only a
//     mount would prevent it.
//   - FIDEDUPERANGE: needs no right to write to the file that it rewrites when
//     the caller owns it.
//   - Everything specific to one file system or driver: subvolumes and
//     snapshots of btrfs among them. FICLONE and FICLONERANGE are part of that
//     family; they write what write(2) could.
//   - Block devices, consoles, line disciplines, KVM, graphics: a sandbox has
//     none of these devices.
//
// ENOTTY is what a file without the command says, so programs know it and fall
// back; EPERM would be the answer of a file that has it.
func ioctls() []Request {
	const terminal, pty, jobs, flow = "settings of a terminal", "pseudo-terminals", "job control", "flow of a terminal"
	const descriptors, files, sockets, interfaces, reflink = "descriptors", "what a file is stored as", "state of a socket",
		"network interfaces, of the sandbox's own network", "copies that share storage (cp --reflink)"
	const namespaces, guest, entropy = "how namespaces belong together (lsns)", "the guest answers notifications (seccomp_unotify(2))",
		"how much entropy there is (GnuPG)"
	return []Request{
		{"TCGETS", unix.TCGETS, terminal},
		{"TIOCGWINSZ", unix.TIOCGWINSZ, terminal},
		{"FIONREAD", unix.TIOCINQ, "bytes to read, of files, pipes, sockets, terminals and inotify"},
		{"FIONBIO", 0x5421, descriptors},
		{"FIOCLEX", 0x5451, descriptors},
		{"FIONCLEX", 0x5450, descriptors},
		{"FIOASYNC", 0x5452, descriptors},
		{"SECCOMP_IOCTL_NOTIF_RECV", unix.SECCOMP_IOCTL_NOTIF_RECV, guest},
		{"SECCOMP_IOCTL_NOTIF_SEND", unix.SECCOMP_IOCTL_NOTIF_SEND, guest},
		{"SECCOMP_IOCTL_NOTIF_ID_VALID", unix.SECCOMP_IOCTL_NOTIF_ID_VALID, guest},
		{"SECCOMP_IOCTL_NOTIF_SET_FLAGS", unix.SECCOMP_IOCTL_NOTIF_SET_FLAGS, guest},
		{"FICLONE", unix.FICLONE, reflink},
		{"FICLONERANGE", unix.FICLONERANGE, reflink},
		{"TCSETS", unix.TCSETS, terminal},
		{"TCSETSW", unix.TCSETSW, terminal},
		{"TCSETSF", unix.TCSETSF, terminal},
		{"TCGETS2", unix.TCGETS2, terminal},
		{"TCSETS2", unix.TCSETS2, terminal},
		{"TCSETSW2", unix.TCSETSW2, terminal},
		{"TCSETSF2", unix.TCSETSF2, terminal},
		{"TCGETA", 0x5405, terminal},
		{"TCSETA", 0x5406, terminal},
		{"TCSETAW", 0x5407, terminal},
		{"TCSETAF", 0x5408, terminal},
		{"TIOCSWINSZ", unix.TIOCSWINSZ, terminal},
		{"TIOCGETD", unix.TIOCGETD, terminal},
		{"TIOCGSOFTCAR", unix.TIOCGSOFTCAR, terminal},
		{"TIOCSSOFTCAR", unix.TIOCSSOFTCAR, terminal},
		{"TIOCGLCKTRMIOS", unix.TIOCGLCKTRMIOS, terminal},
		{"TIOCEXCL", unix.TIOCEXCL, terminal},
		{"TIOCNXCL", unix.TIOCNXCL, terminal},
		{"TIOCGEXCL", unix.TIOCGEXCL, terminal},
		{"TIOCMGET", unix.TIOCMGET, terminal},
		{"TCSBRK", unix.TCSBRK, flow},
		{"TCSBRKP", unix.TCSBRKP, flow},
		{"TIOCSBRK", unix.TIOCSBRK, flow},
		{"TIOCCBRK", unix.TIOCCBRK, flow},
		{"TCXONC", unix.TCXONC, flow},
		{"TCFLSH", unix.TCFLSH, flow},
		{"TIOCOUTQ", unix.TIOCOUTQ, "bytes not yet sent, of terminals and sockets"},
		{"TIOCSCTTY", unix.TIOCSCTTY, jobs},
		{"TIOCNOTTY", unix.TIOCNOTTY, jobs},
		{"TIOCGPGRP", unix.TIOCGPGRP, jobs},
		{"TIOCSPGRP", unix.TIOCSPGRP, jobs},
		{"TIOCGSID", unix.TIOCGSID, jobs},
		{"TIOCGPTN", unix.TIOCGPTN, pty},
		{"TIOCSPTLCK", unix.TIOCSPTLCK, pty},
		{"TIOCGPTLCK", unix.TIOCGPTLCK, pty},
		{"TIOCGPTPEER", unix.TIOCGPTPEER, pty},
		{"TIOCPKT", unix.TIOCPKT, pty},
		{"TIOCGPKT", unix.TIOCGPKT, pty},
		{"TIOCSIG", unix.TIOCSIG, pty},
		{"TIOCGDEV", unix.TIOCGDEV, pty},
		{"FIOQSIZE", 0x5460, files},
		{"FIGETBSZ", 0x2, files}, // linux/fs.h
		{"FS_IOC_GETFLAGS", unix.FS_IOC_GETFLAGS, files},
		{"FS_IOC_GETVERSION", 0x80087601, files}, // and its like: linux/fs.h
		{"FS_IOC_FSGETXATTR", 0x801c581f, files},
		{"FS_IOC_FIEMAP", 0xc020660b, files}, // linux/fiemap.h
		{"RNDGETENTCNT", unix.RNDGETENTCNT, entropy},
		{"SIOCGIFCONF", unix.SIOCGIFCONF, interfaces},
		{"SIOCGIFNAME", unix.SIOCGIFNAME, interfaces},
		{"SIOCGIFINDEX", unix.SIOCGIFINDEX, interfaces},
		{"SIOCGIFFLAGS", unix.SIOCGIFFLAGS, interfaces},
		{"SIOCGIFADDR", unix.SIOCGIFADDR, interfaces},
		{"SIOCGIFDSTADDR", unix.SIOCGIFDSTADDR, interfaces},
		{"SIOCGIFBRDADDR", unix.SIOCGIFBRDADDR, interfaces},
		{"SIOCGIFNETMASK", unix.SIOCGIFNETMASK, interfaces},
		{"SIOCGIFMETRIC", unix.SIOCGIFMETRIC, interfaces},
		{"SIOCGIFMTU", unix.SIOCGIFMTU, interfaces},
		{"SIOCGIFHWADDR", unix.SIOCGIFHWADDR, interfaces},
		{"SIOCGIFTXQLEN", unix.SIOCGIFTXQLEN, interfaces},
		{"SIOCGIFMAP", unix.SIOCGIFMAP, interfaces},
		{"SIOCGIFCOUNT", unix.SIOCGIFCOUNT, interfaces},
		{"SIOCATMARK", unix.SIOCATMARK, sockets},
		{"SIOCOUTQNSD", unix.SIOCOUTQNSD, sockets},
		{"FIOSETOWN", 0x8901, sockets}, // and its like: asm-generic/sockios.h
		{"SIOCSPGRP", unix.SIOCSPGRP, sockets},
		{"FIOGETOWN", 0x8903, sockets},
		{"SIOCGPGRP", unix.SIOCGPGRP, sockets},
		{"SIOCGSTAMP_OLD", 0x8906, sockets},
		{"SIOCGSTAMPNS_OLD", 0x8907, sockets},
		{"SIOCGSTAMP", 0x80108906, sockets},
		{"SIOCGSTAMPNS", 0x80108907, sockets},
		{"NS_GET_USERNS", unix.NS_GET_USERNS, namespaces},
		{"NS_GET_PARENT", unix.NS_GET_PARENT, namespaces},
		{"NS_GET_NSTYPE", unix.NS_GET_NSTYPE, namespaces},
		{"NS_GET_OWNER_UID", unix.NS_GET_OWNER_UID, namespaces},
	}
}

// innerIoctls are also allowed where inner user namespaces are: the kernel
// requires CAP_NET_ADMIN over the network that they change, which can only be
// an inner one.
func innerIoctls() []Request {
	const interfaces = "an inner network's interfaces, with programs that know no netlink (BusyBox)"
	return []Request{
		{"SIOCSIFFLAGS", unix.SIOCSIFFLAGS, interfaces},
		{"SIOCSIFADDR", unix.SIOCSIFADDR, interfaces},
		{"SIOCSIFDSTADDR", unix.SIOCSIFDSTADDR, interfaces},
		{"SIOCSIFBRDADDR", unix.SIOCSIFBRDADDR, interfaces},
		{"SIOCSIFNETMASK", unix.SIOCSIFNETMASK, interfaces},
		{"SIOCSIFMTU", unix.SIOCSIFMTU, interfaces},
		{"SIOCSIFHWADDR", unix.SIOCSIFHWADDR, interfaces},
		{"SIOCSIFNAME", unix.SIOCSIFNAME, interfaces},
		{"SIOCSIFTXQLEN", unix.SIOCSIFTXQLEN, interfaces},
		{"SIOCADDRT", unix.SIOCADDRT, interfaces},
		{"SIOCDELRT", unix.SIOCDELRT, interfaces},
		{"SIOCBRADDBR", unix.SIOCBRADDBR, interfaces},
		{"SIOCBRDELBR", unix.SIOCBRDELBR, interfaces},
		{"SIOCBRADDIF", unix.SIOCBRADDIF, interfaces},
		{"SIOCBRDELIF", unix.SIOCBRDELIF, interfaces},
	}
}
