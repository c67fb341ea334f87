package tracer

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// step is a system call before which something may happen.
type step struct {
	call     uint64
	failures []syscall.Errno // errors that it may have on a machine short of something; none: never tried
	record   bool            // it writes content: a step only for processes that already ran, and when it must fail
}

var (
	onDisk    = []syscall.Errno{unix.ENOSPC, unix.EIO, unix.EROFS}
	onOpening = []syscall.Errno{unix.EMFILE, unix.ENOSPC, unix.EIO}
	onMaking  = []syscall.Errno{unix.EMFILE, unix.ENFILE, unix.ENOMEM}
)

// steps are all the calls that change records, refs and directories, and that
// start or reach other processes.
var steps = append([]step{
	{unix.SYS_RENAMEAT, onDisk, false},
	{unix.SYS_RENAMEAT2, onDisk, false},
	{unix.SYS_LINKAT, onDisk, false},
	{unix.SYS_UNLINKAT, onDisk, false},
	{unix.SYS_MKDIRAT, onDisk, false},
	{unix.SYS_SYMLINKAT, onDisk, false},
	{unix.SYS_FCHOWNAT, onDisk, false},
	{unix.SYS_FCHOWN, onDisk, false},
	{unix.SYS_FCHMODAT, onDisk, false},
	{unix.SYS_FTRUNCATE, onDisk, false},
	{unix.SYS_EXECVE, []syscall.Errno{unix.EIO, unix.ENOMEM, unix.EMFILE}, false},
	{unix.SYS_MOUNT, []syscall.Errno{unix.ENOSPC, unix.EIO, unix.ENOMEM}, false},
	{unix.SYS_MOVE_MOUNT, []syscall.Errno{unix.ENOSPC, unix.EIO, unix.ENOMEM}, false},
	{unix.SYS_CONNECT, nil, false},
	{unix.SYS_BIND, nil, false},
	{unix.SYS_OPENAT, onOpening, true},
	{unix.SYS_WRITE, onDisk, true},
	{unix.SYS_PWRITE64, onDisk, true},
	{unix.SYS_FSYNC, onDisk, true},
	{unix.SYS_FDATASYNC, onDisk, true},
	{unix.SYS_PIPE2, onMaking, true},
	{unix.SYS_SOCKET, onMaking, true},
}, olderSteps...)

// deeds are the calls with which a server process starts, ends and answers others.
var deeds = []uint64{
	unix.SYS_WRITE, unix.SYS_SENDMSG, unix.SYS_SENDTO, unix.SYS_SPLICE, unix.SYS_CLONE, unix.SYS_CLONE3,
	unix.SYS_KILL, unix.SYS_PIDFD_SEND_SIGNAL, unix.SYS_WAITID,
}

func find(call uint64) step {
	for _, one := range steps {
		if one.call == call {
			return one
		}
	}
	return step{}
}

func isStep(call uint64) bool {
	return slices.ContainsFunc(steps, func(one step) bool { return one.call == call && !one.record })
}

func isRecord(call uint64) bool { return find(call).record }

func failuresOf(call uint64) []syscall.Errno { return find(call).failures }

// changes reports whether a call that may write or only look does write, and
// to a file: a pipe that cannot be written is another matter, as Go's own is.
func changes(pid int, at stop) bool {
	switch at.call {
	case unix.SYS_OPENAT:
		return at.args[2]&(unix.O_CREAT|unix.O_TRUNC|unix.O_WRONLY|unix.O_RDWR) != 0 && !strings.HasPrefix(fileOf(pid, at), "/dev/")
	case unix.SYS_WRITE, unix.SYS_PWRITE64, unix.SYS_FSYNC, unix.SYS_FDATASYNC:
		info, err := os.Stat(descriptor(pid, at.args[0]))
		return err == nil && info.Mode().IsRegular() && !strings.HasPrefix(fileOf(pid, at), "/proc/")
	}
	return true
}

func descriptor(pid int, fd uint64) string { return fmt.Sprintf("/proc/%d/fd/%d", pid, int32(fd)) }

// fileOf returns the path that a call is about: of its descriptor, or its
// first argument that is one; empty if unknown.
func fileOf(pid int, at stop) string {
	switch at.call {
	case unix.SYS_WRITE, unix.SYS_PWRITE64, unix.SYS_FSYNC, unix.SYS_FDATASYNC, unix.SYS_FTRUNCATE:
		path, _ := os.Readlink(descriptor(pid, at.args[0])) // it may not be a descriptor at all
		return path
	case unix.SYS_OPENAT, unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2, unix.SYS_LINKAT, unix.SYS_UNLINKAT, unix.SYS_MKDIRAT, unix.SYS_FCHOWNAT, unix.SYS_FCHMODAT:
		return text(pid, at.args[1])
	case unix.SYS_EXECVE, unix.SYS_MOUNT, unix.SYS_SYMLINKAT:
		return text(pid, at.args[0])
	}
	if slices.ContainsFunc(olderSteps, func(one step) bool { return one.call == at.call }) {
		return text(pid, at.args[0])
	}
	return ""
}

// text reads a string of the process.
func text(pid int, address uint64) string {
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		return ""
	}
	defer memory.Close()
	var all []byte
	for page := uint64(4096); len(all) < 4096; { // a page at a time: the next may not exist
		part := make([]byte, page-address%page)
		n, _ := memory.ReadAt(part, int64(address)) // an unreadable page ends the text
		if n == 0 {
			break
		}
		if end := slices.Index(part[:n], 0); end >= 0 {
			return string(append(all, part[:end]...))
		}
		all, address = append(all, part[:n]...), address+uint64(n)
	}
	return string(all)
}
