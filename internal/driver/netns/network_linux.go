package netns

import (
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"github.com/litterbox-sandbox/litterbox/internal/guest/egress"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// The sandbox's own addresses, one for each family, on its loopback interface.
// Without a non-loopback address, look-ups with AI_ADDRCONFIG find nothing for
// that family. They come from ranges that no allowed name is mapped to.
var (
	ownIPv4 = net.IPv4(100, 64, 0, 1).To4()
	ownIPv6 = net.ParseIP("fd6c:6974:7465:7263::1")

	loopback4 = net.IPv4(127, 0, 0, 0).To4()
	loopback6 = net.IPv6loopback
)

// SetUp makes every address local to the sandbox and leads traffic for them to
// the guest, which hands it to the keeper: outgoing TCP to one port, and all
// DNS queries to another. There is no route to anywhere, so that traffic that
// nothing accepts is refused at once.
//
// It runs with CAP_NET_ADMIN over the sandbox's own network namespace.
func SetUp() error {
	steps := []struct {
		what string
		do   func() error
	}{
		{"bring up the loopback interface", addresses},
		{"lead connections to the guest", redirect},
		{"close side doors", sysctls},
	}
	for _, step := range steps {
		if err := step.do(); err != nil {
			return fmt.Errorf("cannot %s: %w", step.what, err)
		}
	}
	return nil
}

// Isolate is SetUp for a sandbox. A kernel without nftables leaves it with only
// a loopback interface: nothing can be allowed then, nothing gets out either,
// and doctor reports it. The sockets are nil if UDP cannot be carried.
func Isolate() (*egress.DatagramSockets, error) {
	if err := SetUp(); err != nil {
		return nil, unlessMissing(err)
	}
	sockets, err := Datagrams()
	if err != nil {
		return nil, unlessMissing(err)
	}
	return &sockets, nil
}

// unlessMissing ignores errors that say that the kernel lacks a feature.
func unlessMissing(err error) error {
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EPROTONOSUPPORT) || errors.Is(err, unix.EAFNOSUPPORT) {
		return nil
	}
	return err
}

func addresses() error {
	lo, err := netlink.LinkByIndex(1) // the loopback interface of every namespace
	if err != nil {
		return err
	}
	if err := netlink.LinkSetUp(lo); err != nil {
		return err
	}
	for _, own := range []*net.IPNet{{IP: ownIPv4, Mask: net.CIDRMask(32, 32)}, {IP: ownIPv6, Mask: net.CIDRMask(128, 128)}} {
		// Without duplicate address detection the address is usable at once.
		if err := netlink.AddrAdd(lo, &netlink.Addr{IPNet: own, Flags: unix.IFA_F_NODAD}); err != nil {
			return fmt.Errorf("cannot add the address %s: %w", own, err)
		}
	}
	// ip route add local 0.0.0.0/0 dev lo, and the same for ::/0.
	for _, all := range []*net.IPNet{{IP: net.IPv4zero.To4(), Mask: net.CIDRMask(0, 32)}, {IP: net.IPv6zero, Mask: net.CIDRMask(0, 128)}} {
		route := &netlink.Route{LinkIndex: 1, Dst: all, Type: unix.RTN_LOCAL, Scope: netlink.SCOPE_HOST, Table: unix.RT_TABLE_LOCAL}
		if err := netlink.RouteAdd(route); err != nil {
			return fmt.Errorf("cannot make %s local: %w", all, err)
		}
	}
	return nil
}

// redirect installs one table of the sandbox's own nftables. Traffic that stays
// inside (loopback and our own addresses) is left alone.
func redirect() error {
	conn, err := nftables.New()
	if err != nil {
		return err
	}
	table := conn.AddTable(&nftables.Table{Family: nftables.TableFamilyINet, Name: "litterbox"})
	chain := conn.AddChain(&nftables.Chain{Name: "out", Table: table, Type: nftables.ChainTypeNAT,
		Hooknum: nftables.ChainHookOutput, Priority: nftables.ChainPriorityNATDest})
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
	for _, protocol := range []byte{unix.IPPROTO_UDP, unix.IPPROTO_TCP} {
		add(protocolIs(protocol), portIs(53), redirectTo(egress.ResolverPort))
	}
	add(to4(ownIPv4, 32), stay)
	add(to6(ownIPv6), stay)
	add(protocolIs(unix.IPPROTO_TCP), redirectTo(egress.ConnectionPort))
	return conn.Flush()
}

func family(protocol byte) []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyNFPROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{protocol}},
	}
}

// to4 matches IPv4 packets to a network of the given prefix length.
func to4(network net.IP, prefix int) []expr.Any {
	return append(family(unix.NFPROTO_IPV4),
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: 16, Len: 4},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Mask: net.CIDRMask(prefix, 32), Xor: make([]byte, 4)},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: network},
	)
}

// to6 matches IPv6 packets to one address.
func to6(address net.IP) []expr.Any {
	return append(family(unix.NFPROTO_IPV6),
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: 24, Len: 16},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: address.To16()},
	)
}

func protocolIs(protocol byte) []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{protocol}},
	}
}

func portIs(port uint16) []expr.Any {
	return []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: binaryutil.BigEndian.PutUint16(port)},
	}
}

func redirectTo(port uint16) []expr.Any {
	return []expr.Any{
		&expr.Immediate{Register: 1, Data: binaryutil.BigEndian.PutUint16(port)},
		&expr.Redir{RegisterProtoMin: 1},
	}
}

// sysctls of the sandbox's network namespace: echo would answer for every
// address and pass for reachability; a server inside may have any port, as in
// a container; and the guest's ports are never given out as source ports.
func sysctls() error {
	settings := []struct{ name, value string }{
		{"ipv4/icmp_echo_ignore_all", "1"},
		{"ipv6/icmp/echo_ignore_all", "1"},
		{"ipv4/ip_unprivileged_port_start", "0"},
		{"ipv4/ip_local_reserved_ports", fmt.Sprintf("%d,%d,%d", egress.ResolverPort, egress.DatagramPort, egress.ConnectionPort)},
	}
	for _, setting := range settings {
		if err := os.WriteFile("/proc/sys/net/"+setting.name, []byte(setting.value), 0); err != nil {
			return err
		}
	}
	return nil
}
