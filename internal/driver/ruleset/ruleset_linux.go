package ruleset

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// MovesABI is the first Landlock that can allow files to move between
// directories (kernel 5.19).
const MovesABI = 2

// ABI returns the version of the kernel's Landlock, and 0 if it has none.
func ABI() int {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(version)
}

// Rights are what a rule may allow. A rule for a file allows those of them that
// files have, and a kernel that does not know a right does not check it.
type Rights uint64

// Rights that are used together.
const (
	Read Rights = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	// Write makes and removes anything but sockets and devices, and moves it
	// between directories.
	Write = Read | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO |
		unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REFER | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	// Nodes makes sockets and devices.
	Nodes Rights = unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK
	// Control is ioctl(2) of devices.
	Control Rights = unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	// Use is the ordinary use of a device.
	Use = Control | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR

	ofFiles = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
)

// Domain says what a domain handles besides files.
type Domain struct {
	Network bool // TCP, which no rule allows then
	Scoped  bool // signals and abstract sockets stay inside
}

// Ruleset is a Landlock domain in the making (landlock(7)): it refuses what
// none of its rules allows.
type Ruleset struct {
	fd      int
	handled Rights
}

// New makes a domain that handles as much of d as this kernel's Landlock knows.
func New(d Domain) (*Ruleset, error) {
	abi := ABI()
	attr := unix.LandlockRulesetAttr{Handled_access_fs: unix.LANDLOCK_ACCESS_FS_MAKE_SYM<<1 - 1}
	for _, later := range []struct {
		abi   int
		right uint64
	}{{2, unix.LANDLOCK_ACCESS_FS_REFER}, {3, unix.LANDLOCK_ACCESS_FS_TRUNCATE}, {5, unix.LANDLOCK_ACCESS_FS_IOCTL_DEV}} {
		if abi >= later.abi {
			attr.Handled_access_fs |= later.right
		}
	}
	if d.Network && abi >= 4 {
		attr.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	if d.Scoped && abi >= 6 {
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	runtime.KeepAlive(&attr)
	if errno != 0 {
		return nil, fmt.Errorf("cannot make a Landlock domain: %w", errno)
	}
	unix.CloseOnExec(int(fd))
	return &Ruleset{fd: int(fd), handled: Rights(attr.Handled_access_fs)}, nil
}

// Allow adds a rule for the file that path leads to. A missing one needs none.
func (r *Ruleset) Allow(path string, rights Rights) error {
	at, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.ENOTDIR) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot allow %q: %w", path, err)
	}
	defer unix.Close(at)
	return r.AllowFile(at, rights)
}

// AllowFile adds a rule for an open file.
func (r *Ruleset) AllowFile(at int, rights Rights) error {
	var st unix.Stat_t
	if err := unix.Fstat(at, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= ofFiles
	}
	attr := unix.LandlockPathBeneathAttr{Allowed_access: uint64(rights & r.handled), Parent_fd: int32(at)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(r.fd), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&attr)), 0, 0, 0)
	runtime.KeepAlive(&attr)
	// EBADFD: a file in memory, which no rule can name and none forbids.
	if errno != 0 && errno != unix.EBADFD {
		return fmt.Errorf("cannot add a Landlock rule: %w", errno)
	}
	return nil
}

// Restrict puts the calling thread, and all it starts from now on, into the
// domain for good.
func (r *Ruleset) Restrict() error {
	defer unix.Close(r.fd)
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("cannot set no_new_privs: %w", err)
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(r.fd), 0, 0); errno != 0 {
		return fmt.Errorf("cannot enter the Landlock domain: %w", errno)
	}
	return nil
}
