package egress

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// watcher reads the interfaces and routes of this machine again whenever the
// kernel says that one has changed (rtnetlink(7)), so that no verdict rests on
// a network that was left, or misses one that was joined.
type watcher struct {
	mu    sync.Mutex
	news  *os.File // nil where the kernel tells nothing
	known Surroundings
	dirty bool
	next  time.Time // not read again before
}

// unheard is how long a reading counts where the kernel tells nothing.
const unheard = time.Second

// WatchSurroundings returns a function that returns the networks around this machine
// now. It is cheap enough to call for every verdict, and safe for concurrent use.
func WatchSurroundings() func() Surroundings {
	w := &watcher{dirty: true}
	const groups = unix.RTMGRP_LINK | unix.RTMGRP_IPV4_IFADDR | unix.RTMGRP_IPV6_IFADDR | unix.RTMGRP_IPV4_ROUTE | unix.RTMGRP_IPV6_ROUTE
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
	if err == nil {
		// Losing news is news too, so the buffer may be small.
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 1)
		if unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: groups}) == nil {
			w.news = os.NewFile(uintptr(fd), "netlink")
		} else {
			_ = unix.Close(fd)
		}
	}
	return w.current
}

func (w *watcher) current() Surroundings {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dirty = w.heard() || w.dirty
	began := time.Now()
	if !w.dirty || began.Before(w.next) {
		return w.known
	}
	// On failure the last reading still counts: special ranges are refused anyway.
	if read, err := readSurroundings(); err == nil {
		w.known = read
	}
	now := time.Now()
	w.dirty = w.news == nil
	w.next = now.Add(10 * now.Sub(began)) // a router's tables may be long
	if w.news == nil {
		w.next = now.Add(unheard)
	}
	return w.known
}

// heard reports whether the kernel has told of a change since the last call.
func (w *watcher) heard() bool {
	if w.news == nil {
		return false
	}
	raw, err := w.news.SyscallConn()
	if err != nil {
		return true
	}
	changed := false
	err = raw.Control(func(fd uintptr) {
		for {
			var message [1]byte
			_, _, err := unix.Recvfrom(int(fd), message[:], unix.MSG_DONTWAIT|unix.MSG_TRUNC)
			if errors.Is(err, unix.EAGAIN) {
				return
			}
			changed = true
			if err != nil && !errors.Is(err, unix.ENOBUFS) && !errors.Is(err, unix.EINTR) {
				return
			}
		}
	})
	return changed || err != nil
}

// readSurroundings asks the kernel for all addresses and routes.
func readSurroundings() (Surroundings, error) {
	var s Surroundings
	err := dump(syscall.RTM_GETADDR, syscall.SizeofIfAddrmsg, func(head []byte, attributes map[uint16][]byte) {
		peer, ok := netip.AddrFromSlice(attributes[syscall.IFA_ADDRESS])
		own, local := netip.AddrFromSlice(attributes[syscall.IFA_LOCAL])
		if !local {
			own = peer
		}
		if ok {
			s.add(own, netip.PrefixFrom(peer, int(head[1])))
		}
	})
	if err != nil {
		return s, err
	}
	joined, err := broadcasting()
	if err != nil {
		return s, err
	}
	err = dump(syscall.RTM_GETROUTE, syscall.SizeofRtMsg, func(head []byte, attributes map[uint16][]byte) { s.route(head, attributes, joined) })
	return s, err
}

// broadcasting lists the interfaces behind which there are neighbours. Routes
// into a tunnel show its use, not what is near.
func broadcasting() (map[uint32]bool, error) {
	joined := map[uint32]bool{}
	err := dump(syscall.RTM_GETLINK, syscall.SizeofIfInfomsg, func(head []byte, _ map[uint16][]byte) {
		index, flags := binary.NativeEndian.Uint32(head[4:]), binary.NativeEndian.Uint32(head[8:])
		joined[index] = flags&syscall.IFF_BROADCAST != 0 && flags&syscall.IFF_POINTOPOINT == 0
	})
	return joined, err
}

// route notes the neighbours that a route shows (rtnetlink(7), struct rtmsg:
// family, length of the destination, …, and at 7 the type).
func (s *Surroundings) route(head []byte, attributes map[uint16][]byte, joined map[uint32]bool) {
	bits, kind := int(head[1]), head[7]
	to, ok := netip.AddrFromSlice(attributes[syscall.RTA_DST])
	hops := gateways(attributes)
	switch {
	case kind == unix.RTN_LOCAL && ok && bits > 0:
		s.Own = append(s.Own, netip.PrefixFrom(to, bits).Masked())
	case kind == unix.RTN_BROADCAST && ok && to.Is4():
		s.Broadcast = append(s.Broadcast, to)
	case kind == unix.RTN_UNICAST && len(hops) > 0:
		for _, router := range hops {
			s.beside(netip.PrefixFrom(router, router.BitLen()))
		}
	case kind == unix.RTN_UNICAST && ok:
		if out := attributes[syscall.RTA_OIF]; len(out) == 4 && joined[binary.NativeEndian.Uint32(out)] {
			s.beside(netip.PrefixFrom(to, bits))
		}
	}
}

// gateways are the routers of a route.
func gateways(attributes map[uint16][]byte) []netip.Addr {
	var all []netip.Addr
	add := func(attributes map[uint16][]byte) {
		if router, ok := netip.AddrFromSlice(attributes[syscall.RTA_GATEWAY]); ok {
			all = append(all, router)
		}
		if via := attributes[unix.RTA_VIA]; len(via) > 2 { // of the other family
			if router, ok := netip.AddrFromSlice(via[2:]); ok {
				all = append(all, router)
			}
		}
	}
	add(attributes)
	// struct rtnexthop: length, flags, hops, interface, then attributes.
	for hops := attributes[syscall.RTA_MULTIPATH]; len(hops) >= syscall.SizeofRtNexthop; {
		length := int(binary.NativeEndian.Uint16(hops))
		if length < syscall.SizeofRtNexthop || length > len(hops) {
			break
		}
		add(attributesOf(hops[syscall.SizeofRtNexthop:length]))
		hops = hops[min(aligned(length), len(hops)):]
	}
	return all
}

// dump calls each with the head and the attributes of every object of a kind.
func dump(kind, size int, each func(head []byte, attributes map[uint16][]byte)) error {
	table, err := syscall.NetlinkRIB(kind, syscall.AF_UNSPEC)
	if err != nil {
		return os.NewSyscallError("netlink", err)
	}
	messages, err := syscall.ParseNetlinkMessage(table)
	if err != nil {
		return os.NewSyscallError("netlink", err)
	}
	for _, message := range messages {
		if message.Header.Type == syscall.NLMSG_DONE {
			break
		}
		if len(message.Data) >= size {
			each(message.Data[:size], attributesOf(message.Data[size:]))
		}
	}
	return nil
}

// attributesOf takes attributes apart (netlink(7): length, type, content).
func attributesOf(data []byte) map[uint16][]byte {
	found := map[uint16][]byte{}
	for len(data) >= syscall.SizeofRtAttr {
		length, kind := int(binary.NativeEndian.Uint16(data)), binary.NativeEndian.Uint16(data[2:])
		if length < syscall.SizeofRtAttr || length > len(data) {
			break
		}
		found[kind&^(unix.NLA_F_NESTED|unix.NLA_F_NET_BYTEORDER)] = data[syscall.SizeofRtAttr:length]
		data = data[min(aligned(length), len(data)):]
	}
	return found
}

func aligned(n int) int { return (n + syscall.NLMSG_ALIGNTO - 1) &^ (syscall.NLMSG_ALIGNTO - 1) }
