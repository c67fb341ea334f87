package guest

import (
	"encoding/binary"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/guest/egress"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
	"golang.org/x/sys/unix"
)

// buffers adds up the kernel memory of the sandbox's sockets, which belongs to
// no process.
func (g *guest) buffers() (wire.Buffers, error) {
	if g.egress == nil {
		return wire.Buffers{}, fault.New(fault.Unsupported, "cannot ask about sockets: the sandbox shares the host's network")
	}
	return wire.Buffers{Bytes: held(g.egress.Owners.Sockets)}, nil
}

// Numbers and sizes of linux/unix_diag.h, linux/inet_diag.h and
// linux/sock_diag.h.
const (
	unixDiagRequest = 16 + 24
	unixDiagMessage = 16
	inetDiagMessage = 72
	unixQueues      = 4 // UNIX_DIAG_RQLEN: two numbers, the first of which is the readable amount
	unixMemory      = 5 // UNIX_DIAG_MEMINFO
	inetMemory      = 7 // INET_DIAG_SKMEMINFO

	// Fields of SK_MEMINFO, by position.
	receiving, sending, queued, backlog = 0, 2, 5, 7
)

// held is the memory of all sockets of this network namespace; 0 when the
// kernel does not say.
func held(d *egress.Diag) int64 {
	if d == nil || d.Fd <= 0 {
		return 0
	}
	d.Mu.Lock()
	defer d.Mu.Unlock()
	var sent, readable, total int64
	local := make([]byte, unixDiagRequest)
	local[16] = unix.AF_UNIX
	binary.NativeEndian.PutUint32(local[20:], egress.DiagAllStates)
	binary.NativeEndian.PutUint32(local[28:], 1<<unixQueues|1<<unixMemory) // UDIAG_SHOW_RQLEN, UDIAG_SHOW_MEMINFO
	dump(d, local, unixDiagMessage, func(kind uint16, value []byte) {
		switch {
		case kind == unixQueues && len(value) >= 8:
			readable += int64(binary.NativeEndian.Uint32(value))
		case kind == unixMemory:
			sent += memoryOf(value, sending)
		}
	})
	// Data is charged to its sender, which is not listed once it is closed; then
	// only the readable amount is left to see.
	total = max(sent, readable)
	for _, family := range []byte{unix.AF_INET, unix.AF_INET6} {
		for _, protocol := range []byte{unix.IPPROTO_TCP, unix.IPPROTO_UDP} {
			request := make([]byte, egress.DiagRequest)
			request[16], request[17], request[18] = family, protocol, 1<<(inetMemory-1)
			binary.NativeEndian.PutUint32(request[20:], egress.DiagAllStates)
			dump(d, request, inetDiagMessage, func(kind uint16, value []byte) {
				if kind == inetMemory {
					total += memoryOf(value, receiving) + max(memoryOf(value, sending), memoryOf(value, queued)) + memoryOf(value, backlog)
				}
			})
		}
	}
	return total
}

func memoryOf(values []byte, at int) int64 {
	if len(values) < 4*at+4 {
		return 0
	}
	return int64(binary.NativeEndian.Uint32(values[4*at:]))
}

// dump sends a request and hands on the attributes of each answer, which begin
// after a header of that size.
func dump(d *egress.Diag, request []byte, header int, attribute func(kind uint16, value []byte)) {
	d.Sequence++
	binary.NativeEndian.PutUint32(request, uint32(len(request)))
	binary.NativeEndian.PutUint16(request[4:], egress.DiagByFamily)
	binary.NativeEndian.PutUint16(request[6:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	binary.NativeEndian.PutUint32(request[8:], d.Sequence)
	if unix.Sendto(d.Fd, request, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}) != nil {
		return
	}
	buffer := make([]byte, 64<<10)
	for {
		n, _, err := unix.Recvfrom(d.Fd, buffer, 0)
		if err != nil || n < 16 {
			return
		}
		for rest := buffer[:n]; len(rest) >= 16; {
			size := int(binary.NativeEndian.Uint32(rest))
			kind, sequence := binary.NativeEndian.Uint16(rest[4:]), binary.NativeEndian.Uint32(rest[8:])
			if size < 16 || size > len(rest) {
				return
			}
			if sequence == d.Sequence {
				if kind == unix.NLMSG_DONE || kind == unix.NLMSG_ERROR {
					return
				}
				if size >= 16+header {
					eachAttribute(rest[16+header:size], attribute)
				}
			}
			rest = rest[min(len(rest), (size+3)&^3):]
		}
	}
}

// eachAttribute calls f for each attribute in data (rtnetlink(3), struct rtattr).
func eachAttribute(data []byte, f func(kind uint16, value []byte)) {
	for len(data) >= 4 {
		size := int(binary.NativeEndian.Uint16(data))
		if size < 4 || size > len(data) {
			return
		}
		f(binary.NativeEndian.Uint16(data[2:]), data[4:size])
		data = data[min(len(data), (size+3)&^3):]
	}
}
