package netns

import (
	"errors"
	"fmt"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"github.com/litterbox-sandbox/litterbox/internal/guest/egress"
	"golang.org/x/sys/unix"
)

// replyMark is on the packets that the guest sends in the name of others, so
// that they are not led back to the guest.
const replyMark = 0x6c62

// Datagrams leads UDP that would leave the sandbox to the guest, and opens the
// sockets that the guest needs for it, while we still may: those that take
// packets for any address, and those that answer in the name of any. They only
// reach the sandbox's own network namespace, which has no route out.
//
// Redirecting, as for TCP, would hide where a datagram was going: UDP has no
// SO_ORIGINAL_DST. But every address is local here, so packets come back in
// through the loopback interface as they were sent, and there TPROXY can give
// them to a socket of ours without changing them.
//
// A kernel without TPROXY answers by itself that nothing listens: UDP then
// cannot be allowed.
func Datagrams() (egress.DatagramSockets, error) {
	if err := divert(); err != nil {
		return egress.DatagramSockets{}, err
	}
	sockets := egress.DatagramSockets{In4: -1, In6: -1, Out4: -1, Out6: -1}
	for _, one := range []struct {
		fd     *int
		domain int
		raw    bool
	}{{&sockets.In4, unix.AF_INET, false}, {&sockets.In6, unix.AF_INET6, false}, {&sockets.Out4, unix.AF_INET, true}, {&sockets.Out6, unix.AF_INET6, true}} {
		var err error
		if one.raw {
			*one.fd, err = speakForAll(one.domain)
		} else {
			*one.fd, err = listenForAll(one.domain)
		}
		if err != nil {
			return sockets, fmt.Errorf("cannot open a socket for datagrams: %w", err)
		}
	}
	return sockets, nil
}

// divert installs the rules that lead datagrams to the guest, in a table that
// is installed as a whole or not at all.
func divert() error {
	conn, err := nftables.New()
	if err != nil {
		return err
	}
	table := conn.AddTable(&nftables.Table{Family: nftables.TableFamilyINet, Name: "litterbox-udp"})
	chain := conn.AddChain(&nftables.Chain{Name: "in", Table: table, Type: nftables.ChainTypeFilter,
		Hooknum: nftables.ChainHookPrerouting, Priority: nftables.ChainPriorityMangle})
	add := func(parts ...[]expr.Any) {
		var all []expr.Any
		for _, part := range parts {
			all = append(all, part...)
		}
		conn.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: all})
	}
	stay := []expr.Any{&expr.Verdict{Kind: expr.VerdictReturn}}
	add(to4(loopback4, 8), stay)
	add(to6(loopback6), stay)
	add(to4(ownIPv4, 32), stay)
	add(to6(ownIPv6), stay)
	// A program's own address is the one that it sends to, so answers look as if
	// they were for outside too. Connection tracking knows them, and the mark
	// identifies those it has forgotten.
	add([]expr.Any{
		&expr.Ct{Key: expr.CtKeyDIRECTION, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{ctReply}},
	}, stay)
	add([]expr.Any{
		&expr.Meta{Key: expr.MetaKeyMARK, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: binaryutil.NativeEndian.PutUint32(replyMark)},
	}, stay)
	add(protocolIs(unix.IPPROTO_UDP), []expr.Any{
		&expr.Immediate{Register: 1, Data: binaryutil.BigEndian.PutUint16(egress.DatagramPort)},
		&expr.TProxy{Family: unix.NFPROTO_UNSPEC, TableFamily: unix.NFPROTO_INET, RegPort: 1},
		&expr.Verdict{Kind: expr.VerdictAccept},
	})
	return conn.Flush()
}

// ctReply is IP_CT_DIR_REPLY (linux/netfilter/nf_conntrack_tuple_common.h).
const ctReply = 1

// listenForAll opens a socket that TPROXY may give packets for any address, and
// that tells which (ip(7), IP_TRANSPARENT and IP_RECVORIGDSTADDR).
func listenForAll(domain int) (int, error) {
	fd, err := unix.Socket(domain, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, err
	}
	var address unix.Sockaddr = &unix.SockaddrInet4{Port: egress.DatagramPort}
	level, transparent, original := unix.SOL_IP, unix.IP_TRANSPARENT, unix.IP_RECVORIGDSTADDR
	if domain == unix.AF_INET6 {
		address = &unix.SockaddrInet6{Port: egress.DatagramPort}
		level, transparent, original = unix.SOL_IPV6, unix.IPV6_TRANSPARENT, unix.IPV6_RECVORIGDSTADDR
		err = unix.SetsockoptInt(fd, unix.SOL_IPV6, unix.IPV6_V6ONLY, 1)
	}
	err = errors.Join(err, unix.SetsockoptInt(fd, level, transparent, 1), unix.SetsockoptInt(fd, level, original, 1), unix.Bind(fd, address))
	if err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}

// speakForAll opens a socket that sends whole packets and receives none
// (raw(7), IPPROTO_RAW).
func speakForAll(domain int) (int, error) {
	fd, err := unix.Socket(domain, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.IPPROTO_RAW)
	if err != nil {
		return -1, err
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MARK, replyMark); err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}

// HandOver puts the sockets where the guest finds them. The numbers are above
// those that the runtime of this program may have taken for itself.
func HandOver(sockets egress.DatagramSockets) error {
	for i, fd := range []int{sockets.In4, sockets.In6, sockets.Out4, sockets.Out6} {
		if err := unix.Dup3(fd, datagramFD+i, 0); err != nil {
			return err
		}
	}
	return nil
}

// InheritedDatagrams returns the sockets that HandOver put there; ok is false when it
// did not.
func InheritedDatagrams() (sockets egress.DatagramSockets, ok bool) {
	for i := range 4 {
		if _, err := unix.GetsockoptInt(datagramFD+i, unix.SOL_SOCKET, unix.SO_DOMAIN); err != nil {
			return sockets, false
		}
		unix.CloseOnExec(datagramFD + i)
	}
	return egress.DatagramSockets{In4: datagramFD, In6: datagramFD + 1, Out4: datagramFD + 2, Out6: datagramFD + 3}, true
}

const datagramFD = 60 // and three more: the guest's sockets for datagrams, if there are any
