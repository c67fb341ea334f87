package egress

import (
	"encoding/binary"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Diag asks the kernel about one socket (sock_diag(7), linux/inet_diag.h). The
// tables in /proc/net say the same, but to read them the kernel walks a table
// that it shares among all namespaces and that grows with the machine's
// memory: more than a millisecond on one with 24 GB, against a few
// microseconds.
type Diag struct {
	Mu       sync.Mutex
	Fd       int // opened before the system call filter, which forbids that; 0 if there is none
	Sequence uint32
}

// Sizes and numbers of linux/inet_diag.h and linux/sock_diag.h.
const (
	DiagByFamily  = 20 // SOCK_DIAG_BY_FAMILY
	DiagRequest   = 16 + 8 + 48
	diagInode     = 16 + 4 + 48 + 16 // of the answer: header, state, socket, four counters
	diagState     = 16 + 1
	diagListen    = 10 // TCP_LISTEN
	DiagAllStates = 0xffffffff
)

// NewDiag uses an open socket of NETLINK_SOCK_DIAG. The kernel answers within
// the call that asks; the time limit is for a kernel that does not.
func NewDiag(fd int) *Diag {
	limit := unix.NsecToTimeval(int64(time.Second))
	if fd > 0 && unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit) != nil {
		fd = 0
	}
	return &Diag{Fd: fd}
}

// inode finds the TCP socket that is connected from local to remote; empty when
// the kernel does not say.
func (d *Diag) inode(local, remote netip.AddrPort) string {
	if d == nil || d.Fd <= 0 {
		return ""
	}
	from, to := local.Addr().Unmap(), remote.Addr().Unmap()
	request := make([]byte, DiagRequest)
	binary.NativeEndian.PutUint32(request, DiagRequest)
	binary.NativeEndian.PutUint16(request[4:], DiagByFamily)
	binary.NativeEndian.PutUint16(request[6:], unix.NLM_F_REQUEST)
	request[16], request[17] = unix.AF_INET6, unix.IPPROTO_TCP
	if from.Is4() {
		request[16] = unix.AF_INET
	}
	binary.NativeEndian.PutUint32(request[20:], DiagAllStates)
	binary.BigEndian.PutUint16(request[24:], local.Port())
	binary.BigEndian.PutUint16(request[26:], remote.Port())
	copy(request[28:], from.AsSlice())
	copy(request[44:], to.AsSlice())
	copy(request[64:], []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}) // any cookie

	d.Mu.Lock()
	defer d.Mu.Unlock()
	d.Sequence++
	binary.NativeEndian.PutUint32(request[8:], d.Sequence)
	if unix.Sendto(d.Fd, request, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}) != nil {
		return ""
	}
	var answer [512]byte
	for {
		n, _, err := unix.Recvfrom(d.Fd, answer[:], 0)
		if err != nil || n < 16 {
			return ""
		}
		if binary.NativeEndian.Uint32(answer[8:]) != d.Sequence {
			continue // to an abandoned question
		}
		return DiagAnswer(answer[:n])
	}
}

// DiagAnswer reads the answer to a question for one socket.
func DiagAnswer(answer []byte) (inode string) {
	if len(answer) < diagInode+4 || binary.NativeEndian.Uint16(answer[4:]) != DiagByFamily {
		return "" // an error: the socket is gone, or a kernel without tcp_diag
	}
	if answer[diagState] == diagListen {
		return "" // nothing is connected; this is the listener
	}
	if inode := binary.NativeEndian.Uint32(answer[diagInode:]); inode != 0 {
		return strconv.FormatUint(uint64(inode), 10)
	}
	return ""
}
