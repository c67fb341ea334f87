package overlay

import (
	"encoding/binary"
	"errors"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Attributes changes modes and times of files for commands, in a place that
// shares the host's file system: Landlock lets any process change those of all
// the user's files. The call itself never goes on, because its arguments could
// change after a look at them; the guest looks at the very file that it
// changes.
type Attributes struct {
	Watched
	Writable []string
}

func (a *Attributes) Serve() {
	a.each(func(n *notification) answer {
		if pid, ok := aboutProcess(n); ok {
			return a.onlyItself(n, pid)
		}
		return answer{errno: -int32(a.change(n))}
	})
}

// attributeCall is one call's arguments, still as the caller gave them.
type attributeCall struct {
	dir   int32
	path  uint64 // address; 0 is the descriptor itself
	mode  uint32
	times uint64 // address; 0 is now
	touch bool
	flags uint64
}

// attributeCallOf distinguishes the calls, by the numbers of each architecture.
func attributeCallOf(n *notification) (c attributeCall, ok bool) {
	a := n.args
	switch [2]uint32{n.arch, uint32(n.nr)} {
	case [2]uint32{unix.AUDIT_ARCH_X86_64, 90}: // chmod
		return attributeCall{dir: unix.AT_FDCWD, path: a[0], mode: uint32(a[1])}, a[0] != 0
	case [2]uint32{unix.AUDIT_ARCH_X86_64, 91}, [2]uint32{unix.AUDIT_ARCH_AARCH64, 52}: // fchmod
		return attributeCall{dir: int32(a[0]), mode: uint32(a[1])}, true
	case [2]uint32{unix.AUDIT_ARCH_X86_64, 268}, [2]uint32{unix.AUDIT_ARCH_AARCH64, 53}: // fchmodat
		return attributeCall{dir: int32(a[0]), path: a[1], mode: uint32(a[2])}, a[1] != 0
	case [2]uint32{unix.AUDIT_ARCH_X86_64, 452}, [2]uint32{unix.AUDIT_ARCH_AARCH64, 452}: // fchmodat2
		return attributeCall{dir: int32(a[0]), path: a[1], mode: uint32(a[2]), flags: a[3] & 0xffffffff}, a[1] != 0
	case [2]uint32{unix.AUDIT_ARCH_X86_64, 280}, [2]uint32{unix.AUDIT_ARCH_AARCH64, 88}: // utimensat
		return attributeCall{dir: int32(a[0]), path: a[1], times: a[2], touch: true, flags: a[3] & 0xffffffff}, true
	}
	return attributeCall{}, false
}

// change carries a call out, and returns its error.
func (a *Attributes) change(n *notification) (errno unix.Errno) {
	defer func() {
		if recover() != nil {
			errno = unix.EPERM // a defect here must not stop every change inside
		}
	}()
	c, ok := attributeCallOf(n)
	if !ok {
		return unix.EFAULT
	}
	if c.flags&^(unix.AT_SYMLINK_NOFOLLOW|unix.AT_EMPTY_PATH) != 0 {
		return unix.EINVAL
	}
	times, ok := c.readTimes(n.pid)
	if !ok {
		return unix.EFAULT
	}
	file, errno := c.open(n.pid)
	if errno != 0 {
		return errno
	}
	defer unix.Close(file)
	link := "/proc/self/fd/" + strconv.Itoa(file)
	real, err := os.Readlink(link)
	if err != nil || !a.allows(real) {
		return unix.EPERM
	}
	if !a.valid(n) {
		return unix.EINTR // the caller no longer waits
	}
	var st unix.Stat_t
	if err := unix.Fstat(file, &st); err != nil {
		return unix.EIO
	}
	isLink := st.Mode&unix.S_IFMT == unix.S_IFLNK
	isDirectory := st.Mode&unix.S_IFMT == unix.S_IFDIR
	switch {
	case c.touch:
		err = touch(file, times)
	case isLink:
		err = unix.EOPNOTSUPP // links have no mode of their own
	case c.mode&unix.S_ISUID != 0 || c.mode&unix.S_ISGID != 0 && !isDirectory:
		err = unix.EPERM // see setGroup
	default:
		err = unix.Fchmodat(unix.AT_FDCWD, link, c.mode&0o7777, 0)
	}
	errors.As(err, &errno)
	return errno
}

// allows reports whether an open file lies in the place. Nothing inside can link
// or move a file from elsewhere there.
func (a *Attributes) allows(real string) bool {
	for _, dir := range a.Writable {
		if real == dir || strings.HasPrefix(real, dir+"/") {
			return true
		}
	}
	return false
}

// open opens what the call names, only as a location in the file system
// (O_PATH): nothing is read, and a pipe or a device does not notice.
func (c attributeCall) open(pid uint32) (int, unix.Errno) {
	if c.path == 0 && c.dir < 0 {
		return -1, unix.EBADF // AT_FDCWD too: only a path starts there
	}
	name := procPath(pid, "cwd")
	if c.dir != unix.AT_FDCWD {
		name = procPath(pid, "fd/"+strconv.Itoa(int(c.dir)))
	}
	follow := 0
	if c.path != 0 {
		path, ok := callerString(pid, c.path)
		switch {
		case !ok:
			return -1, unix.EFAULT
		case path == "" && c.flags&unix.AT_EMPTY_PATH == 0:
			return -1, unix.ENOENT
		case path == "":
		case path[0] == '/':
			name = path
			for _, own := range []string{"/proc/self/", "/proc/thread-self/"} {
				if rest, ok := strings.CutPrefix(path, own); ok {
					name = procPath(pid, rest)
				}
			}
			if rest, ok := strings.CutPrefix(path, "/dev/fd/"); ok {
				name = procPath(pid, "fd/"+rest)
			}
		default:
			name += "/" + path
		}
		if path != "" && c.flags&unix.AT_SYMLINK_NOFOLLOW != 0 {
			follow = unix.O_NOFOLLOW
		}
	}
	fd, err := unix.Open(name, unix.O_PATH|unix.O_CLOEXEC|follow, 0)
	if err != nil {
		var errno unix.Errno
		if errors.As(err, &errno) {
			return -1, errno
		}
		return -1, unix.EIO
	}
	return fd, 0
}

// readTimes reads two struct timespec of the caller.
func (c attributeCall) readTimes(pid uint32) (times [2]unix.Timespec, ok bool) {
	if !c.touch || c.times == 0 {
		now := unix.Timespec{Nsec: unix.UTIME_NOW}
		return [2]unix.Timespec{now, now}, true
	}
	mem, err := unix.Open(procPath(pid, "mem"), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return times, false
	}
	defer unix.Close(mem)
	var raw [32]byte
	if n, err := unix.Pread(mem, raw[:], int64(c.times)); err != nil || n != len(raw) {
		return times, false
	}
	for i := range times {
		times[i].Sec = int64(binary.LittleEndian.Uint64(raw[16*i:]))
		times[i].Nsec = int64(binary.LittleEndian.Uint64(raw[16*i+8:]))
	}
	return times, true
}

// touch sets the times of an open file, also of a link (AT_EMPTY_PATH, 5.8).
func touch(file int, times [2]unix.Timespec) error {
	empty := []byte{0}
	_, _, errno := unix.Syscall6(unix.SYS_UTIMENSAT, uintptr(file), uintptr(unsafe.Pointer(&empty[0])),
		uintptr(unsafe.Pointer(&times)), unix.AT_EMPTY_PATH, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
