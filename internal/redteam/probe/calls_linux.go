package probe

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

func named(err error) string {
	if err == nil {
		return "ok"
	}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		if errno == 0 {
			return "ok"
		}
		return unix.ErrnoName(errno)
	}
	return err.Error()
}

// call makes a raw system call. Descriptors stay open: the probe ends soon.
func call(number uintptr, args ...uintptr) string {
	var a [6]uintptr
	copy(a[:], args)
	_, _, errno := unix.RawSyscall6(number, a[0], a[1], a[2], a[3], a[4], a[5])
	if errno == 0 {
		return "ok"
	}
	return named(errno)
}

func text(s string) uintptr {
	p, err := unix.BytePtrFromString(s)
	if err != nil {
		panic(err)
	}
	return uintptr(unsafe.Pointer(p))
}

// bad is a descriptor that no process has.
const bad = ^uintptr(0)

// calls tries system calls. Each acts on nothing but the probe and its own
// temporary files, or has arguments that the kernel refuses for another reason
// than the sandbox does: so the two are told apart, and nothing happens to the
// machine where a call is allowed. It still refuses to run as the machine's
// root; the control is `probe bare calls`.
func calls([]string) (any, error) {
	if holdsMachine() {
		return nil, errMachine
	}
	dir, err := os.MkdirTemp("", "probe-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		return nil, err
	}
	at := bad - 99 // AT_FDCWD, -100
	nowhere := text("/no/such/directory")
	null := uintptr(0)
	reading, err := open(file)
	if err != nil {
		return nil, err
	}
	directory, err := open(dir)
	if err != nil {
		return nil, err
	}
	attempts := outcomes{
		// Namespaces and mounts.
		"unshare bad flag": call(unix.SYS_UNSHARE, unix.CLONE_NEWUSER|1),
		"clone newuser fs": call(unix.SYS_CLONE, unix.CLONE_NEWUSER|unix.CLONE_FS|uintptr(unix.SIGCHLD)),
		"clone3":           call(unix.SYS_CLONE3, null, 0),
		"setns":            call(unix.SYS_SETNS, bad, 0),
		"mount":            call(unix.SYS_MOUNT, text("none"), nowhere, text("tmpfs"), 0, null),
		"umount2":          call(unix.SYS_UMOUNT2, nowhere, 0),
		"pivot_root":       call(unix.SYS_PIVOT_ROOT, nowhere, nowhere),
		"chroot":           call(unix.SYS_CHROOT, nowhere),
		"open_tree":        call(unix.SYS_OPEN_TREE, at, nowhere, unix.OPEN_TREE_CLOEXEC),
		"move_mount":       call(unix.SYS_MOVE_MOUNT, at, nowhere, at, nowhere, 0),
		"fsopen":           call(unix.SYS_FSOPEN, text("no such file system"), 0),
		"fsconfig":         call(unix.SYS_FSCONFIG, bad, 0, null, null, 0),
		"fsmount":          call(unix.SYS_FSMOUNT, bad, 0, 0),
		"fspick":           call(unix.SYS_FSPICK, at, nowhere, 0),
		"mount_setattr":    call(unix.SYS_MOUNT_SETATTR, at, nowhere, 0, null, 0),
		"sethostname":      call(unix.SYS_SETHOSTNAME, text("probe"), 1<<10), // too long to be taken

		// Kernel subsystems.
		"io_uring_setup":    call(unix.SYS_IO_URING_SETUP, 0, null),
		"io_uring_enter":    call(unix.SYS_IO_URING_ENTER, bad, 0, 0, 0, null, 0),
		"io_uring_register": call(unix.SYS_IO_URING_REGISTER, bad, 0, null, 0),
		"bpf":               call(unix.SYS_BPF, 0, null, 1<<20),
		"perf_event_open":   call(unix.SYS_PERF_EVENT_OPEN, null, 0, 0, bad, 1<<30),
		"userfaultfd":       call(unix.SYS_USERFAULTFD, 1), // UFFD_USER_MODE_ONLY
		"keyctl":            call(unix.SYS_KEYCTL, 1<<20),
		"add_key":           call(unix.SYS_ADD_KEY, text("user"), text("probe"), null, 1<<30, ^uintptr(1)),
		"request_key":       call(unix.SYS_REQUEST_KEY, null, null, null, 0),
		"kcmp":              call(unix.SYS_KCMP, uintptr(os.Getpid()), uintptr(os.Getpid()), 0, 0, 0),
		"pidfd_getfd":       call(unix.SYS_PIDFD_GETFD, bad, 0, 0),
		"fanotify_init":     call(unix.SYS_FANOTIFY_INIT, 1<<31, 0),
		"syslog":            call(unix.SYS_SYSLOG, 3, null, 1),     // SYSLOG_ACTION_READ_ALL
		"personality":       call(unix.SYS_PERSONALITY, 0x0400000), // READ_IMPLIES_EXEC

		// Sockets.
		"socket packet":       call(unix.SYS_SOCKET, unix.AF_PACKET, unix.SOCK_RAW, 0),
		"socket raw":          call(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP),
		"socket raw 6":        call(unix.SYS_SOCKET, unix.AF_INET6, unix.SOCK_RAW, unix.IPPROTO_ICMPV6),
		"socket netlink":      call(unix.SYS_SOCKET, unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_KOBJECT_UEVENT),
		"socket unknown type": call(unix.SYS_SOCKET, unix.AF_VSOCK, 15, 0),
		"socketpair packet":   call(unix.SYS_SOCKETPAIR, unix.AF_PACKET, unix.SOCK_DGRAM, 0, null),

		// Files that would be dangerous on the host.
		"chmod setuid": call(unix.SYS_FCHMODAT, at, text(file), 0o4755),
		"chmod setgid": call(unix.SYS_FCHMODAT, at, text(file), 0o2755),
		"open setuid":  call(unix.SYS_OPENAT, at, text(file+"-setuid"), unix.O_CREAT|unix.O_WRONLY, 0o4755),
		"openat2":      call(unix.SYS_OPENAT2, at, nowhere, null, 0),
		"mknod device": call(unix.SYS_MKNODAT, at, text(file+"-device"), unix.S_IFCHR|0o600, 0), // 0:0, which a user may make

		// The terminal of an attached user; the descriptor does not exist.
		"tiocsti":      call(unix.SYS_IOCTL, bad, unix.TIOCSTI, null),
		"tiocsti high": call(unix.SYS_IOCTL, bad, 1<<32|unix.TIOCSTI, null), // CVE-2019-7303
		"tioclinux":    call(unix.SYS_IOCTL, bad, unix.TIOCLINUX, null),
		"tiocsetd":     call(unix.SYS_IOCTL, bad, unix.TIOCSETD, null),

		// Calls that act on files without writing to them.
		"lease":           call(unix.SYS_FCNTL, reading, unix.F_SETLEASE, unix.F_RDLCK),
		"lease high":      call(unix.SYS_FCNTL, reading, 1<<32|unix.F_SETLEASE, unix.F_RDLCK),
		"delegation":      call(unix.SYS_FCNTL, directory, unix.F_SETDELEG, uintptr(unsafe.Pointer(&[2]uint32{}))),
		"dnotify":         call(unix.SYS_FCNTL, directory, unix.F_NOTIFY, 4), // DN_CREATE
		"write hint":      call(unix.SYS_FCNTL, reading, unix.F_SET_RW_HINT, uintptr(unsafe.Pointer(new(uint64)))),
		"flags":           call(unix.SYS_IOCTL, reading, unix.FS_IOC_SETFLAGS, uintptr(unsafe.Pointer(new(uint64)))),
		"flags high":      call(unix.SYS_IOCTL, reading, 1<<32|unix.FS_IOC_SETFLAGS, uintptr(unsafe.Pointer(new(uint64)))),
		"dedupe":          call(unix.SYS_IOCTL, bad, unix.FIDEDUPERANGE, null),
		"file_setattr":    call(fileSetattr, at, nowhere, null, 0, 0),
		"rename whiteout": call(unix.SYS_RENAMEAT2, at, text(file+"-gone"), at, text(file+"-went"), unix.RENAME_WHITEOUT),
	}
	return attempts, nil
}

// fileSetattr is file_setattr(2), of Linux 6.17, on both architectures.
const fileSetattr = 469

// open opens a file for reading, which stays open.
func open(path string) (uintptr, error) {
	at, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	return uintptr(at), err
}

// attributes sets extended attributes that overlayfs would obey.
func attributes(args []string) (any, error) {
	result := outcomes{}
	for _, name := range args[1:] {
		result[name] = named(unix.Lsetxattr(args[0], name, []byte("/etc"), 0))
	}
	return result, nil
}
