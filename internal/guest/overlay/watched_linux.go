package overlay

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Watched is the listener of a filter that asks about calls of commands
// (seccomp_unotify(2)).
type Watched struct{ Listener int }

// notification is struct seccomp_notif, answer struct seccomp_notif_resp
// (linux/seccomp.h).
type notification struct {
	id    uint64
	pid   uint32 // a thread, in the guest's pid namespace
	flags uint32
	nr    int32
	arch  uint32
	ip    uint64
	args  [6]uint64
}

type answer struct {
	id    uint64
	value int64
	errno int32
	flags uint32
}

// each answers every notification, for as long as the guest lives.
func (w Watched) each(decide func(*notification) answer) {
	// Once it is closed, the kernel answers callers with ENOSYS; open and
	// unserved, they would hang.
	defer unix.Close(w.Listener)
	w.wakeHere()
	for {
		var n notification
		switch errno := w.ioctl(unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n)); errno {
		case 0:
		case unix.EINTR, unix.ENOENT: // ENOENT: the caller was killed meanwhile
			continue
		default:
			return
		}
		reply := decide(&n)
		reply.id = n.id
		_ = w.ioctl(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&reply)) // ENOENT: gone
	}
}

// wakeHere has the kernel run the answering thread on the processor of the thread
// that waits for it, and back: neither has anything to do while the other works, and
// waking another processor takes longer than an answer. Kernels before 6.6 refuse
// and wake any.
func (w Watched) wakeHere() {
	_ = unix.IoctlSetInt(w.Listener, unix.SECCOMP_IOCTL_NOTIF_SET_FLAGS, unix.SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP)
}

func (w Watched) ioctl(request uintptr, arg unsafe.Pointer) unix.Errno {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(w.Listener), request, uintptr(arg))
	return errno
}

// valid reports whether the caller still waits, so that its pid is still its own.
func (w Watched) valid(n *notification) bool {
	id := n.id
	return w.ioctl(unix.SECCOMP_IOCTL_NOTIF_ID_VALID, unsafe.Pointer(&id)) == 0
}
